"""Changes: a stream, what leaves a caller's view, a filter, and a cursor that goes on after a pause."""

import townsquare

with townsquare.Client.open(":memory:") as client:
    service = client.as_service()
    harbor = service.spaces.create_space("Harbor", is_public=True)

    # The stream is live when `changes` returns. It acts for the caller of its handle: here an anonymous one.
    with client.realtime.changes(table="spaces") as changes:
        service.spaces.create_space("Secret")  # private: the stream does not show it
        service.spaces.update_space(harbor.id, name="Quay")
        service.spaces.update_space(harbor.id, is_public=False)
        for _ in range(2):
            change = changes.next(timeout=10)
            assert change is not None, "no change within ten seconds"
            print(change.event_type, "of", change.table)
            cursor = change.cursor  # store it with the work that it stands for

    # While nobody listens, the log goes on.
    service.fidgets.create_fidget(harbor.id, "clock")
    service.fidgets.create_fidget(harbor.id, "chess")
    service.spaces.delete_space(harbor.id)

    # From the cursor on, without gap and repeat, up to now.
    now = service.realtime.cursor()
    of_harbor = f"space_id=eq.{harbor.id}"
    for change in service.realtime.changes(table="fidgets", filter=of_harbor, since=cursor, until=now):
        print(change.event_type, "of", change.table)

    # Rows first, then their changes.
    with service.realtime.live(table="spaces", filter="name=eq.Secret") as live:
        print("rows now:", len(live.rows))
        service.spaces.create_space("Secret")
        print("then:", next(live).event_type)

    try:
        client.realtime.changes(table="spaces", filter="colour=eq.red")
    except townsquare.InvalidInputError as error:
        print(error)
