package password

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"runtime"
	"strconv"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"
)

// asHashes is the environment variable that makes this test binary act as the separate process.
const asHashes = "SELVAGE_TEST_HASHES"

func TestMain(m *testing.M) {
	if os.Getenv(asHashes) == "" {
		os.Exit(m.Run())
	}
	pipe := struct {
		io.Reader
		io.WriteCloser
	}{os.Stdin, os.Stdout}
	if err := Weak(2).Serve(pipe); err != nil {
		panic(err)
	}
}

// A separateHasher is a Hasher that uses a separate process. Its limits are so high that callers never
// wait for a turn, and that a slow machine does not exceed them.
type separateHasher struct {
	*Hasher
	started []*exec.Cmd
	broken  []error
}

func newSeparateHasher(t *testing.T, path string) *separateHasher {
	a := &separateHasher{Hasher: Weak(8)}
	command := func() *exec.Cmd {
		cmd := exec.Command(path)
		cmd.Env = []string{asHashes + "=yes"}
		a.started = append(a.started, cmd)
		return cmd
	}
	a.Apart(command, func(err error) { a.broken = append(a.broken, err) })
	a.apart.answerFor = time.Hour
	t.Cleanup(a.Close)
	return a
}

// check shows that the Hasher hashes and verifies passwords.
func (a *separateHasher) check(t *testing.T) {
	t.Helper()
	hash, err := a.Hash(t.Context(), "fathom lantern")
	if err != nil {
		t.Fatal(err)
	}

	if got, err := a.Verify(t.Context(), hash, "fathom lantern"); err != nil || !got {
		t.Errorf("Verify with the password = %v, %v, want true", got, err)
	}
	if got, err := a.Verify(t.Context(), hash, "fathom lanterns"); err != nil || got {
		t.Errorf("Verify with a different password = %v, %v, want false", got, err)
	}
	if got, err := a.Verify(t.Context(), "", "fathom lantern"); err != nil || got {
		t.Errorf("Verify with an empty hash = %v, %v, want false", got, err)
	}
	if _, err := a.Verify(t.Context(), "$argon2id$nonsense", "fathom lantern"); err == nil {
		t.Error("Verify with an unreadable hash succeeds, want an error")
	}
}

// wantStarted checks how many processes were started, and how many of them failed.
func (a *separateHasher) wantStarted(t *testing.T, started, broken int) {
	t.Helper()
	if n := len(a.started); n != started {
		t.Fatalf("%d processes were started, want %d; failures: %v", n, started, a.broken)
	}
	if n := len(a.broken); n != broken {
		t.Errorf("%d processes failed, want %d: %v", n, broken, a.broken)
	}
}

// TestApart shows that a single separate process, with a lower priority, computes the hashes.
func TestApart(t *testing.T) {
	a := newSeparateHasher(t, os.Args[0])
	var callers sync.WaitGroup
	for range 4 {
		callers.Go(func() { a.check(t) })
	}

	callers.Wait()
	a.wantStarted(t, 1, 0)
	if runtime.GOOS != "linux" {
		t.Skip("the priority of a process can be read on Linux only")
	}

	stat, err := os.ReadFile(fmt.Sprintf("/proc/%d/stat", a.started[0].Process.Pid))
	if err != nil {
		t.Fatal(err)
	}
	_, afterName, _ := bytes.Cut(stat, []byte(") "))
	nice := strings.Fields(string(afterName))[16]
	if n, err := strconv.Atoi(nice); err != nil || n < behind {
		t.Errorf("the nice value of the process is %s, want at least %d", nice, behind)
	}
}

// TestApartDies shows that if the process is killed, another one computes the next hash.
func TestApartDies(t *testing.T) {
	a := newSeparateHasher(t, os.Args[0])
	a.check(t)
	if err := a.started[0].Process.Kill(); err != nil {
		t.Fatal(err)
	}
	a.check(t)
	if n := len(a.started); n != 2 {
		t.Errorf("%d processes were started, want 2; failures: %v", n, a.broken)
	}
}

// TestApartStopped shows that if the process is suspended, this process computes the hashes.
func TestApartStopped(t *testing.T) {
	a := newSeparateHasher(t, os.Args[0])
	a.check(t)
	if err := a.started[0].Process.Signal(syscall.SIGSTOP); err != nil {
		t.Fatal(err)
	}
	a.apart.answerFor = time.Millisecond
	a.check(t)
	a.wantStarted(t, 1, 1)
	if err := errors.Join(a.broken...); !errors.Is(err, errNoAnswer) {
		t.Errorf("the failure is %v, want %v", err, errNoAnswer)
	}
}

// TestApartFails shows that if the separate process cannot be started, or ends immediately, this
// process computes the hashes and the failure is reported.
func TestApartFails(t *testing.T) {
	for _, path := range []string{"/nonexistent", "/bin/true"} {
		a := newSeparateHasher(t, path)
		a.check(t)
		if len(a.broken) == 0 {
			t.Errorf("%s: the failure was not reported", path)
		}
	}
}

// TestApartIdle shows that Close stops an idle process, and that another one is started when it is
// needed.
func TestApartIdle(t *testing.T) {
	a := newSeparateHasher(t, os.Args[0])
	a.check(t)
	a.Close()
	a.check(t)
	a.wantStarted(t, 2, 0)
}
