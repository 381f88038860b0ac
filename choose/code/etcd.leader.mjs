const campaign = new Etcd3({ hosts }).election(name, {ttl_s}).campaign(id);
campaign.on('elected', () => work());
campaign.on('error', (error) => stop(error));  // another may lead, so stop at once
