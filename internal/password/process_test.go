package password

import (
	"errors"
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
	if os.Getenv(asHashes) != "" {
		if err := Weak(2).Serve(struct {
			io.Reader
			io.WriteCloser
		}{os.Stdin, os.Stdout}); err != nil {
			panic(err)
		}
		return
	}
	os.Exit(m.Run())
}

// An apartment is a Hasher that uses a separate process. Its limits are so high that callers never
// wait for a turn, and that a slow machine does not exceed them.
type apartment struct {
	*Hasher
	started []*exec.Cmd
	broken  []error
}

func newApartment(t *testing.T, path string) *apartment {
	a := &apartment{Hasher: Weak(8)}
	a.Apart(func() *exec.Cmd {
		cmd := exec.Command(path)
		cmd.Env = []string{asHashes + "=yes"}
		a.started = append(a.started, cmd)
		return cmd
	}, func(err error) { a.broken = append(a.broken, err) })
	a.apart.answerFor = time.Hour
	t.Cleanup(a.Close)
	return a
}

// check shows that the Hasher hashes and verifies passwords.
func (a *apartment) check(t *testing.T) {
	t.Helper()
	hash, err := a.Hash(t.Context(), "fathom lantern")
	if err != nil {
		t.Fatal(err)
	}

	for password, want := range map[string]bool{"fathom lantern": true, "fathom lanterns": false} {
		if got, err := a.Verify(t.Context(), hash, password); got != want || err != nil {
			t.Errorf("Verify(%q) = %v, %v, want %v", password, got, err, want)
		}
	}
	if got, err := a.Verify(t.Context(), "", "fathom lantern"); got || err != nil {
		t.Errorf("Verify against an empty hash = %v, %v, want false", got, err)
	}
	if _, err := a.Verify(t.Context(), "$argon2id$nonsense", "fathom lantern"); err == nil {
		t.Error("Verify against an unreadable hash: no error")
	}
}

// TestApart shows that a single separate process, with a lower priority, computes the hashes.
func TestApart(t *testing.T) {
	a := newApartment(t, os.Args[0])
	var all sync.WaitGroup
	for range 4 {
		all.Go(func() { a.check(t) })
	}

	all.Wait()
	if len(a.started) != 1 || len(a.broken) > 0 {
		t.Fatalf("%d processes were started, want 1; broken: %v", len(a.started), a.broken)
	}
	if runtime.GOOS != "linux" {
		t.Skip("the priority of a process can be read on Linux only")
	}

	stat, err := os.ReadFile("/proc/" + strconv.Itoa(a.started[0].Process.Pid) + "/stat")
	if err != nil {
		t.Fatal(err)
	}
	fields := strings.Fields(string(stat[strings.LastIndexByte(string(stat), ')')+1:]))
	if nice, err := strconv.Atoi(fields[16]); err != nil || nice < behind {
		t.Errorf("the process has the priority %s, want %d", fields[16], behind)
	}
}

// TestApartDies shows that if the process is killed, another one computes the next hash.
func TestApartDies(t *testing.T) {
	a := newApartment(t, os.Args[0])
	a.check(t)
	if err := a.started[0].Process.Kill(); err != nil {
		t.Fatal(err)
	}
	a.check(t)
	if len(a.started) != 2 {
		t.Errorf("%d processes were started, want 2; broken: %v", len(a.started), a.broken)
	}
}

// TestApartStopped shows that if the process is suspended, this process computes the hashes.
func TestApartStopped(t *testing.T) {
	a := newApartment(t, os.Args[0])
	a.check(t)
	if err := a.started[0].Process.Signal(syscall.SIGSTOP); err != nil {
		t.Fatal(err)
	}
	a.apart.answerFor = time.Millisecond
	a.check(t)
	if len(a.broken) != 1 || !errors.Is(a.broken[0], errNoAnswer) || len(a.started) != 1 {
		t.Errorf("%d processes were started, want 1; broken: %v, want one timeout", len(a.started), a.broken)
	}
}

// TestApartFails shows that if the separate process cannot be started, or ends immediately, this
// process computes the hashes and the failure is reported.
func TestApartFails(t *testing.T) {
	for _, path := range []string{"/nonexistent", "/bin/true"} {
		a := newApartment(t, path)
		a.check(t)
		if len(a.broken) == 0 {
			t.Errorf("%s: the failure was not reported", path)
		}
	}
}

// TestApartIdle shows that the process is stopped when it is idle, and started again when it is
// needed.
func TestApartIdle(t *testing.T) {
	a := newApartment(t, os.Args[0])
	a.check(t)
	a.Close()
	a.check(t)
	if len(a.started) != 2 || len(a.broken) > 0 {
		t.Errorf("%d processes were started, want 2; broken: %v", len(a.started), a.broken)
	}
}
