"""Discovery: trending apps, filters, search with a typing error, similar apps and categories."""

import townsquare

with townsquare.Client.open(":memory:", catalog_url="sample:") as client:
    discovery = client.discovery

    for app in discovery.get_trending_mini_apps("24h", limit=3):
        print("trending:", app.engagement.trending_rank, app.name)

    for app in discovery.get_mini_apps_by_category(["games"], limit=2, networks=["base"]):
        print("game on base:", app.name)

    # The first word has the British spelling, and the last one is not finished: the app is "Harbor Chess".
    for app in discovery.search_mini_apps("harbour ches", limit=1):
        print("found:", app.name, app.home_url)

    for app in discovery.get_similar_mini_apps(app.id, limit=2):
        print("similar:", app.name)

    for category in discovery.categories()[:3]:
        print("category:", category.name, category.count)

    stats = discovery.stats()
    print("catalog:", stats.total, "apps,", "stale" if stats.is_stale else "fresh")

    try:
        discovery.search_mini_apps("chess", limit=5000)
    except townsquare.InvalidInputError as error:
        print(error)
