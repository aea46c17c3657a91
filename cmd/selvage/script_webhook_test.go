package main

import (
	"fmt"
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"os"
	"sync"

	"github.com/rogpeppe/go-internal/testscript"

	"github.com/selvage/selvage/internal/deliver"
)

// cmdReceive starts a receiver that accepts every webhook. For each delivery, it writes a line with
// the SHA-256 signature and the body to a file.
func cmdReceive(ts *testscript.TestScript, _ bool, args []string) {
	file, err := os.OpenFile(ts.MkAbs(args[0]), os.O_CREATE|os.O_APPEND|os.O_WRONLY, 0o600)
	ts.Check(err)
	var mu sync.Mutex
	s := httptest.NewServer(http.HandlerFunc(func(_ http.ResponseWriter, r *http.Request) {
		body, err := io.ReadAll(r.Body)
		if err != nil {
			panic(http.ErrAbortHandler) // the delivery is retried
		}
		mu.Lock()
		defer mu.Unlock()
		_, err = fmt.Fprintln(file, r.Header.Get(deliver.SHA256Header), string(body))
		if err != nil {
			panic(http.ErrAbortHandler)
		}
	}))

	ts.Defer(func() {
		s.Close()
		_ = file.Close()
	})

	_, port, err := net.SplitHostPort(s.Listener.Addr().String())
	ts.Check(err)
	ts.Setenv("HOOK", "http://localhost:"+port+"/hook")
}
