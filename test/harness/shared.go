package harness

import (
	"io"
	"net/http"
	"os"
	"path/filepath"
	"sync"

	"github.com/selvage/selvage/test/servers"
)

var (
	sharedMu sync.Mutex
	shared   *Server
	endings  []func() // cleanups to run at the end of the process
)

// A lasting is the T of the first test that needs something shared. Its cleanups run at the end of
// the process, instead of at the end of the test.
type lasting struct{ T }

func (lasting) Cleanup(do func()) { endings = append(endings, do) }

// Shared returns the server that the tests of a package share, each with its own project. [Main]
// stops the server. Tests that stop their server, or would disturb other tests, start their own
// server.
func Shared(t T) *Server {
	t.Helper()
	sharedMu.Lock()
	defer sharedMu.Unlock()
	if shared == nil {
		dir, err := os.MkdirTemp("", "selvage-shared-")
		if err != nil {
			t.Fatalf("creating a data directory: %v", err)
		}
		s := &Server{
			Data:     filepath.Join(dir, "data"),
			Backends: servers.Backend(lasting{t}),
			binary:   Binary(t),
			shared:   true,
		}
		s.start(t, "127.0.0.1:0", "127.0.0.1:0", "127.0.0.1:0")
		shared = s
	}

	select {
	case <-shared.exited:
		t.Fatalf("the shared server has ended: %v\n%s", shared.exit, shared.Log())
	default:
	}
	return shared
}

// end stops the shared server and removes its data.
func (s *Server) end() {
	_ = s.cmd.Process.Signal(os.Interrupt)
	<-s.exited
	_ = os.RemoveAll(filepath.Dir(s.Data))
}

// stacks returns the stacks of the server's goroutines, which help to explain why a request timed
// out.
func (s *Server) stacks() string {
	resp, err := http.Get(s.Ops + "/debug/pprof/goroutine?debug=1")
	if err != nil {
		return err.Error()
	}
	defer resp.Body.Close()
	text, err := io.ReadAll(resp.Body)
	if err != nil {
		return err.Error()
	}
	return string(text)
}
