package faults

import (
	"bytes"
	"net"
	"os/exec"
	"testing"
	"time"

	"github.com/selvage/selvage/test/harness"
	"github.com/selvage/selvage/test/network"
)

// TestOffline shows that a server connects only to configured machines. The server starts, signs a
// subscriber in, issues tokens, stores a recording and checks itself in a network whose router does
// not answer. The server must not try to reach the router.
func TestOffline(t *testing.T) {
	harness.OneBackend(t)
	if !network.Isolate(t) {
		return
	}

	p := harness.Start(t).NewProject(t)
	p.NewClient(t, "web").SignIn(t, p.NewSubscriber(t), "openid")
	p.NewSAT(t, "ada")
	p.Upload(t, harness.Tone(8000, 1))
	p.Command(t, "", "doctor")
	if asked := router(t); asked != "" {
		t.Errorf("the server tried to reach another machine: %s", asked)
	}

	// This connection shows that the test would have noticed an attempt.
	if conn, err := net.DialTimeout("tcp", "198.51.100.1:443", time.Second); err == nil {
		t.Fatalf("connected to %s, although no router answers", conn.RemoteAddr())
	}
	if router(t) == "" {
		t.Error("the kernel does not show that a process tried to reach another machine")
	}
}

// router returns the kernel's entry for the router. The entry is "" until a process sends a packet
// to another machine.
func router(t *testing.T) string {
	t.Helper()
	out, err := exec.Command("ip", "neigh", "show", "to", network.Router).CombinedOutput()
	if err != nil {
		t.Fatalf("ip neigh: %v, %s", err, out)
	}
	return string(bytes.TrimSpace(out))
}
