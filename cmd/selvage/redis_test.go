package main

import (
	"github.com/rogpeppe/go-internal/testscript"

	"github.com/selvage/selvage/test/servers"
)

// A scriptRedis is the Redis server of one script, or a Cluster if SELVAGE_TEST_BACKEND selects
// one.
type scriptRedis struct {
	nodes []*servers.RedisServer
	url   string
}

// redisKey is the key under which a script keeps its Redis.
type redisKey struct{}

// cmdRedis controls the script's own Redis, which it creates on first use:
//
//	redis own      makes later commands of the script keep their sessions in it
//	redis kill     kills it
//	redis start    starts it with its old data
//	redis empty    starts it without data
//	redis pause    makes it hold connections without responding
//	redis resume   makes it respond again
//	redis flush    deletes all its data
//	redis config NAME VALUE
func cmdRedis(ts *testscript.TestScript, _ bool, args []string) {
	t := ts.Value(scriptTKey{}).(scriptT)
	r, ok := t.Values[redisKey{}].(*scriptRedis)
	if !ok {
		r = newScriptRedis(t)
		t.Values[redisKey{}] = r
	}

	if args[0] == "own" {
		ts.Setenv("SELVAGE_SESSIONS", r.url)
		return
	}

	for _, node := range r.nodes {
		switch args[0] {
		case "kill":
			node.Kill(t)
		case "start":
			node.Start(t)
		case "empty":
			node.StartEmpty(t)
		case "pause":
			node.Pause(t)
		case "resume":
			node.Resume(t)
		case "config":
			node.CLI(t, "CONFIG", "SET", args[1], args[2])
		case "flush":
			node.CLI(t, "FLUSHALL")
		default:
			ts.Fatalf("redis cannot %s", args[0])
		}
	}
}

// newScriptRedis starts a Redis server, or a Cluster, that only one script uses.
func newScriptRedis(t scriptT) *scriptRedis {
	if servers.BackendName(t) == "cluster" {
		cluster := servers.OwnCluster(t, 0)
		return &scriptRedis{nodes: cluster.Nodes, url: cluster.URL}
	}
	server := servers.OwnRedis(t)
	return &scriptRedis{nodes: []*servers.RedisServer{server}, url: server.URL}
}
