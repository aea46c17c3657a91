package network

import (
	"bytes"
	"flag"
	"fmt"
	"io"
	"os"
	"os/exec"
	"strings"

	"github.com/selvage/selvage/test/harness"
)

// Address and OtherAddress are addresses of the machine in the network of [Isolate], in addition to
// loopback. Router is the address of the default router, which does not exist.
const (
	Address      = "192.0.2.1"
	OtherAddress = "192.0.2.2"
	Router       = "192.0.2.254"
)

// isolated is an environment variable. It contains the name of the test for which this process runs
// in its own network.
const isolated = "SELVAGE_TEST_ISOLATED"

// connect adds the addresses to a network namespace, and then runs a command there. The router of
// the default route does not exist, but without this route, Firefox considers itself offline.
const connect = `
set -e
ip link set lo up
ip link add name one type veth peer name other
ip addr add ` + Address + `/24 dev one
ip addr add ` + OtherAddress + `/24 dev other
ip link set one up
ip link set other up
ip route add default via ` + Router + ` dev other
exec "$@"
`

// Isolate runs the calling test again in another process, which cannot reach other machines. Its
// network has only loopback and two more addresses. All processes that it starts end when it ends.
// Isolate returns true in the other process. If it returns false, the test is over, and the caller
// must return.
func Isolate(t interface {
	harness.T
	Name() string
}) bool {
	t.Helper()
	if os.Getenv(isolated) == t.Name() {
		go func() {
			_, _ = io.Copy(io.Discard, os.Stdin) // returns when the parent process has ended
			os.Exit(1)
		}()
		return true
	}

	harness.Need(t, "ip", "unshare")
	args := []string{"--net", "--pid", "--fork", "--mount-proc"}
	if os.Geteuid() != 0 {
		args = append(args, "--map-root-user")
	}
	args = append(args, "sh", "-c", connect, "sh")
	if out, err := exec.Command("unshare", append(args, "true")...).CombinedOutput(); err != nil {
		harness.Missing(t,
			fmt.Sprintf("the right to create network namespaces (%v, %s)", err, bytes.TrimSpace(out)))
	}

	cmd := exec.Command("unshare", append(args, os.Args[0], "-test.run="+selection(t.Name()), "-test.v")...)
	cmd.Env = append(os.Environ(), isolated+"="+t.Name(), "SELVAGE_BINARY="+harness.Binary(t))
	if _, err := cmd.StdinPipe(); err != nil { // stays open as long as this process lives
		t.Fatalf("isolating %s: %v", t.Name(), err)
	}
	out, err := cmd.CombinedOutput()
	if err != nil {
		t.Fatalf("in a network namespace: %v\n%s", err, out)
	}
	t.Logf("in a network namespace:\n%s", out)
	return false
}

// selection returns a pattern for the test and for those of its subtests that this process was
// asked to run.
func selection(name string) string {
	_, subtests, some := strings.Cut(flag.Lookup("test.run").Value.String(), "/")
	if !some {
		return "^" + name + "$"
	}
	return "^" + name + "$/" + subtests
}
