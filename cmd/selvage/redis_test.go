package main

import (
	"github.com/rogpeppe/go-internal/testscript"

	"github.com/selvage/selvage/test/servers"
)

// A scriptRedis is the Redis of one script: a Cluster where the backend is one.
type scriptRedis struct {
	nodes []*servers.RedisServer
	url   string
}

type redisKey struct{}

// cmdRedis does something to the script's own Redis, which the first use makes:
//
//	redis own      keeps the sessions of what is started from now on there
//	redis kill     ends it at once
//	redis start    starts it with the data it had
//	redis empty    starts it without
//	redis pause    lets it hold connections and answer nothing
//	redis resume   lets it go on
//	redis flush    removes all it has
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
	for _, n := range r.nodes {
		switch args[0] {
		case "kill":
			n.Kill(t)
		case "start":
			n.Start(t)
		case "empty":
			n.StartEmpty(t)
		case "pause":
			n.Pause(t)
		case "resume":
			n.Resume(t)
		case "config":
			n.CLI(t, "CONFIG", "SET", args[1], args[2])
		case "flush":
			n.CLI(t, "FLUSHALL")
		default:
			ts.Fatalf("redis can not %s", args[0])
		}
	}
}

func newScriptRedis(t scriptT) *scriptRedis {
	if servers.BackendName(t) == "cluster" {
		c := servers.OwnCluster(t, 0)
		return &scriptRedis{c.Nodes, c.URL}
	}
	r := servers.OwnRedis(t)
	return &scriptRedis{[]*servers.RedisServer{r}, r.URL}
}
