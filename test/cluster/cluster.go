// Package cluster runs selvage like a large deployment, all on loopback. It starts three nodes
// behind a proxy, a Redis Cluster of three masters and three replicas, PostgreSQL with a streaming
// replica, and an object store for recordings.
//
// `make cluster` runs it for people. The tests kill each of its processes under load.
package cluster

import (
	"github.com/selvage/selvage/test/harness"
	"github.com/selvage/selvage/test/servers"
)

// size is the number of nodes.
const size = 3

// A Cluster is three nodes with their databases. Its embedded Nodes are behind a proxy that skips
// nodes that are not ready.
type Cluster struct {
	*harness.Nodes
	Redis    *servers.RedisCluster
	Postgres *servers.PostgresPair
	S3       *servers.S3Server
}

// Start starts a cluster, which is stopped at the end of the test. The prefix is a command that
// runs each node.
func Start(t harness.T, prefix ...string) *Cluster {
	t.Helper()
	c := &Cluster{
		Redis:    servers.OwnCluster(t, 1),
		Postgres: servers.OwnPostgresPair(t),
		S3:       servers.OwnS3(t),
	}
	config := harness.Config{
		Prefix: prefix,
		Args:   []string{"--stop-delay", "1s"},
		Backends: []string{
			"SELVAGE_DATABASE=" + c.Postgres.Database(t), "SELVAGE_SESSIONS=" + c.Redis.URL},
	}
	for name, value := range c.S3.Env(c.S3.NewBucket(t)) {
		config.Env = append(config.Env, name+"="+value)
	}

	configs := make([]harness.Config, size)
	for i := range configs {
		configs[i] = config
	}
	c.Nodes = harness.StartNodes(t, nil, configs...)
	c.Balance(t)
	return c
}
