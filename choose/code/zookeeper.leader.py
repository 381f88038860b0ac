client = KazooClient(hosts=url, timeout={ttl_s})
client.start()
client.add_listener(lambda state: stop() if state != "CONNECTED" else None)  # another may lead
client.Election(name, identifier).run(work)
