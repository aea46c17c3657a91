package clients

import (
	"bufio"
	"bytes"
	"encoding/json"
	"io"
	"os"
	"os/exec"
	"testing"
	"time"

	"github.com/selvage/selvage/test/harness"
)

// nodeDeadline bounds one run of a script.
const nodeDeadline = 3 * time.Minute

// runNode runs a Node script with its settings as JSON in the environment. The script prints URLs
// to open in a browser, one per line, and reads the result of visit for each of them. The test
// fails if the script exits with an error.
func runNode(t *testing.T, script string, settings map[string]string, visit func(url string) string, env ...string) {
	t.Helper()
	needNode(t)
	text, err := json.Marshal(settings)
	if err != nil {
		t.Fatal(err)
	}

	cmd := exec.CommandContext(t.Context(), "node", script)
	cmd.Env = append(append(os.Environ(), "SETTINGS="+string(text)), env...)
	var faults bytes.Buffer
	cmd.Stderr = &faults
	in, out := pipes(t, cmd)

	timer := time.AfterFunc(nodeDeadline, func() { _ = cmd.Process.Kill() })
	defer timer.Stop()
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}

	for lines := bufio.NewScanner(out); lines.Scan(); {
		if _, err := io.WriteString(in, visit(lines.Text())+"\n"); err != nil {
			break // the script has ended, and its status says why
		}
	}
	if err := cmd.Wait(); err != nil {
		t.Fatalf("%s: %v\n%s", script, err, faults.String())
	}
}

// pipes returns the standard input and output of a command that has not started yet.
func pipes(t *testing.T, cmd *exec.Cmd) (io.WriteCloser, io.ReadCloser) {
	t.Helper()
	in, err := cmd.StdinPipe()
	if err != nil {
		t.Fatal(err)
	}
	out, err := cmd.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	return in, out
}

// noVisit is the visit function for scripts that open no page.
func noVisit(string) string { return "" }

// needNode ends the test unless Node and the packages of this directory are installed.
func needNode(t *testing.T) {
	t.Helper()
	harness.Need(t, "node")
	if _, err := os.Stat("node_modules"); err != nil {
		harness.Missing(t, "test/clients/node_modules")
	}
}
