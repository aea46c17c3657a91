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
	endings  []func() // of what lasts as long as the process
)

// A lasting T is that of the test which comes first; what it would clean up stays
// until the end of all.
type lasting struct{ T }

func (lasting) Cleanup(do func()) { endings = append(endings, do) }

// Shared returns the server that the tests of a package share, each in a project
// of its own. [Main] ends it. A server of one's own is for tests that stop it or
// that would stand in the others' way.
func Shared(t T) *Server {
	t.Helper()
	sharedMu.Lock()
	defer sharedMu.Unlock()
	if shared == nil {
		dir, err := os.MkdirTemp("", "selvage-shared-")
		if err != nil {
			t.Fatalf("making a data directory: %v", err)
		}
		s := &Server{Data: filepath.Join(dir, "data"), Backends: servers.Backend(lasting{t}),
			binary: Binary(t), shared: true}
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

// end stops a shared server and removes what it kept.
func (s *Server) end() {
	_ = s.cmd.Process.Signal(os.Interrupt)
	<-s.exited
	_ = os.RemoveAll(filepath.Dir(s.Data))
}

// stacks returns what each goroutine of the server is at, for who waits for it in vain.
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
