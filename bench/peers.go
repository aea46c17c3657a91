package main

import (
	"bufio"
	"fmt"
	"io"
	"os"
	"os/exec"
	"slices"
	"strings"
	"text/tabwriter"

	"github.com/selvage/selvage/test/harness"
)

// A peer is another OpenID provider, running on the server's core.
type peer struct {
	name       string
	pid        int
	operations []operation
}

// startPeers starts the other providers, which `make bench-peers` installs.
func startPeers(p *harness.Program, pinned bool) []peer {
	zitadel := provider{
		authorize:  "/auth",
		token:      "/oauth/token",
		introspect: "/oauth/introspect",
		userinfo:   "/userinfo",
		jwks:       "/keys",
		login:      "/login/username",
		form:       "username=test-user@localhost&password=verysecure&id=",
	}
	node := provider{
		authorize:  "/auth",
		token:      "/token",
		introspect: "/token/introspection",
		userinfo:   "/me",
		jwks:       "/jwks",
	}
	return []peer{
		zitadel.start(p, "zitadel/oidc example", pinned, "bin/bench-peers"),
		node.start(p, "oidc-provider", pinned, "node", "bench/peers/provider.mjs"),
	}
}

// start starts a provider on a free port and waits until it is ready.
func (v provider) start(p *harness.Program, name string, pinned bool, command ...string) peer {
	v.host = strings.Replace(freeAddress(p), "127.0.0.1", "localhost", 1)
	args := append(append(serverPrefix(pinned), command...), v.host)
	cmd := exec.Command(args[0], args[1:]...)
	cmd.Env, cmd.Stderr = append(os.Environ(), procs, "NODE_ENV=production"), os.Stderr
	out, err := cmd.StdoutPipe()
	if err != nil {
		p.Fatalf("%v", err)
	}

	if err := cmd.Start(); err != nil {
		p.Fatalf("starting %s: %v", name, err)
	}
	p.Cleanup(func() {
		_ = cmd.Process.Kill()
		_ = cmd.Wait() // fails because the process was killed
	})

	if line, err := bufio.NewReader(out).ReadString('\n'); line != "ready\n" {
		p.Fatalf("starting %s: %q, %v", name, line, err)
	}
	return peer{name: name, pid: cmd.Process.Pid, operations: v.measured(p)}
}

// compareWithPeers measures selvage and the other providers alternately. For each operation, it prints
// the median CPU times of selvage and of each peer. It also divides selvage's time by the peer's in
// each pair of measurements, and prints the median, the minimum and the maximum of these ratios.
func compareWithPeers(p *harness.Program, s settings, pinned bool, out io.Writer) {
	ours, peers := newWorld(p, pinned, ""), startPeers(p, pinned)
	t := tabwriter.NewWriter(out, 0, 0, 2, ' ', tabwriter.AlignRight)
	fmt.Fprint(t, "operation\tc\tselvage, CPU ms\t")
	for _, other := range peers {
		fmt.Fprintf(t, "%s, CPU ms\tratio\tfrom\tto\t", other.name)
	}
	fmt.Fprintln(t)

	for _, op := range ours.operations(p) {
		if rivals := rivalsOf(op, peers); len(rivals) > 0 && s.only.MatchString(op.name) {
			p.Logf("%s", op.title())
			fmt.Fprintln(t, compareWith(p, s, op, ours.PID(), rivals))
		}
	}
	_ = t.Flush() // a failed write to the terminal is ignored
	harness.Sweep()
}

// A rival is a peer in the comparison of one operation.
type rival struct {
	pid int
	op  *operation // nil if the peer does not support it
}

// rivalsOf returns a rival for each peer, or nil if no peer can run op.
func rivalsOf(op operation, peers []peer) (rivals []rival) {
	found := false
	for _, other := range peers {
		r := rival{pid: other.pid}
		i := slices.IndexFunc(other.operations, func(o operation) bool { return o.title() == op.title() })
		if i >= 0 {
			r.op, found = &other.operations[i], true
		}
		rivals = append(rivals, r)
	}
	if !found {
		return nil
	}
	return rivals
}

// compareWith measures an operation on selvage and on its rivals, and returns a row of the table.
func compareWith(p *harness.Program, s settings, op operation, pid int, rivals []rival) string {
	var ours []sample
	theirs, ratios := make([][]sample, len(rivals)), make([][]float64, len(rivals))
	for range s.repeat {
		mine := measure(p, op, pid, s.length, nil)
		ours = append(ours, mine)
		for i, r := range rivals {
			if r.op != nil {
				m := measure(p, *r.op, r.pid, s.length, nil)
				theirs[i], ratios[i] = append(theirs[i], m), append(ratios[i], mine.cpu/m.cpu)
			}
		}
	}

	row := fmt.Sprintf("%s\t%d\t%.4f\t", op.name, op.connections, median(ours).cpu)
	for i, r := range rivals {
		if r.op == nil {
			row += "–\t\t\t\t"
			continue
		}
		slices.Sort(ratios[i])
		row += fmt.Sprintf("%.4f\t%.2f\t%.2f\t%.2f\t", median(theirs[i]).cpu, ratios[i][len(ratios[i])/2],
			ratios[i][0], ratios[i][len(ratios[i])-1])
	}
	return row
}
