"""The first program of the book once more, for asyncio."""

import asyncio

import townsquare


async def main() -> None:
    async with townsquare.AsyncClient.open(":memory:", catalog_url="sample:") as client:
        for app in await client.discovery.search_mini_apps("chess", limit=3):
            print(app.name, app.home_url)

        await client.auth.sign_up("ann@town.example", "correct horse")
        await client.auth.sign_in("ann@town.example", "correct horse")
        await client.spaces.create_space("Harbor", is_public=True)

        for space in await client.spaces.get_public_spaces(limit=20):
            print("public space:", space.name)


asyncio.run(main())
