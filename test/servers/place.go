package servers

import (
	"fmt"
	"io"
	"math/rand/v2"
	"net"
	"os"
	"os/exec"
	"runtime"
	"sync"
	"syscall"
)

// A place is the directory of all that this process starts. It goes with the
// process: a shell holds the other end of a pipe that closes when we end, however
// we end. What still writes there then is about to die.
type place struct {
	dir  string
	open *os.File // our end of the pipe, which must not be collected
}

var thePlace = sync.OnceValues(func() (*place, error) {
	dir, err := os.MkdirTemp("", "selvage-servers-")
	if err != nil {
		return nil, err
	}
	// The account that PostgreSQL runs as must be able to pass.
	if err := os.Chmod(dir, 0o755); err != nil {
		return nil, err
	}
	held, end, err := os.Pipe()
	if err != nil {
		return nil, err
	}
	defer held.Close()
	sweeper := exec.Command("/bin/sh", "-c",
		`read _; n=0; until rm -rf "$1" 2>/dev/null || [ $n = 100 ]; do n=$((n+1)); sleep 0.1; done`, "sh", dir)
	sweeper.Stdin = held
	sweeper.SysProcAttr = &syscall.SysProcAttr{Setsid: true} // what ends our group is no end for it
	if err := sweeper.Start(); err != nil {
		return nil, fmt.Errorf("starting the shell that sweeps: %w", err)
	}
	return &place{dir: dir, open: end}, nil
})

// newPlace makes a directory in the place, for the account; nil is ours.
func newPlace(kind string, account *syscall.Credential) (string, error) {
	p, err := thePlace()
	if err != nil {
		return "", fmt.Errorf("making a place for servers: %w", err)
	}
	dir, err := os.MkdirTemp(p.dir, kind+"-")
	if err != nil {
		return "", fmt.Errorf("making a place for %s: %w", kind, err)
	}
	if account != nil {
		if err := os.Chown(dir, int(account.Uid), int(account.Gid)); err != nil {
			return "", fmt.Errorf("giving a place away: %w", err)
		}
	}
	return dir, nil
}

// FreePort returns a port of 127.0.0.1 that nobody listens on, for as long as this process lives:
// no other test is given it, nor is any connection, so that it stays free while its server
// has not begun, or is stopped.
func FreePort(t T) int {
	t.Helper()
	port, err := freePort()
	check(t, err)
	return port
}

// claims tell other test processes which ports were given, and end with ours: they are Linux's
// sockets that have a name and no file.
var (
	claimsMu sync.Mutex
	claims   []io.Closer
)

func freePort() (int, error) {
	var last error
	for range 100 {
		port := 10000 + rand.IntN(20000) // below those that Linux chooses
		if runtime.GOOS == "linux" {
			claim, err := net.Listen("unix", fmt.Sprintf("@selvage-test-%d", port))
			if err != nil {
				last = err
				continue
			}
			claimsMu.Lock()
			claims = append(claims, claim)
			claimsMu.Unlock()
		}
		l, err := net.Listen("tcp", fmt.Sprintf("127.0.0.1:%d", port))
		if err != nil {
			last = err
			continue
		}
		return port, l.Close()
	}
	return 0, fmt.Errorf("looking for a free port: %w", last)
}

// spawner is a thread that starts processes and lives as long as we do: Linux
// sends the signal of a parent's death when the thread ends that was the parent.
var spawner = sync.OnceValue(func() chan<- func() {
	work := make(chan func())
	go func() {
		runtime.LockOSThread()
		for do := range work {
			do()
		}
	}()
	return work
})

// spawn starts a command which is sent the signal when this process ends.
func spawn(cmd *exec.Cmd, dying syscall.Signal) error {
	dieWithUs(cmd.SysProcAttr, dying)
	started := make(chan error)
	spawner() <- func() { started <- cmd.Start() }
	return <-started
}
