package main

import (
	"github.com/rogpeppe/go-internal/testscript"

	"github.com/selvage/selvage/test/servers"
)

// bucketKey is the key under which a script keeps its object store.
type bucketKey struct{}

// cmdBucket controls the object store of a script:
//
//	bucket         makes later commands store media in a new bucket
//	bucket stop    stops the object store
//	bucket start   starts it again
func cmdBucket(ts *testscript.TestScript, _ bool, args []string) {
	t := ts.Value(scriptTKey{}).(scriptT)
	s, ok := t.Values[bucketKey{}].(*servers.S3Server)
	if !ok {
		s = servers.OwnS3(t)
		t.Values[bucketKey{}] = s
	}

	switch {
	case len(args) == 0:
		for name, value := range s.Env(s.NewBucket(t)) {
			ts.Setenv(name, value)
		}
	case args[0] == "stop":
		s.Stop(t)
	case args[0] == "start":
		s.Start(t)
	default:
		ts.Fatalf("bucket cannot %s", args[0])
	}
}
