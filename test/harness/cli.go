package harness

import (
	"bytes"
	"encoding/json"
	"errors"
	"os"
	"os/exec"
	"slices"
	"strings"
)

// CLI runs a selvage command on the server's data directory, with the given standard input.
// It returns the JSON object that the command prints.
func (s *Server) CLI(t T, stdin string, args ...string) map[string]any {
	t.Helper()
	out := s.command(t, stdin, append(args, "-o", "json")...)
	var v map[string]any
	if err := json.Unmarshal(out, &v); err != nil {
		t.Fatalf("selvage %s printed no JSON object: %v\n%s", strings.Join(args, " "), err, out)
	}
	return v
}

// Command runs a command like [Server.CLI] and returns its output as text.
func (s *Server) Command(t T, stdin string, args ...string) string {
	t.Helper()
	return string(s.command(t, stdin, args...))
}

func (s *Server) command(t T, stdin string, args ...string) []byte {
	t.Helper()
	cmd := exec.Command(s.binary, append(args, "--data", s.Data)...)
	cmd.Env = slices.Concat(os.Environ(), s.Backends, s.config.Env)
	cmd.Stdin = strings.NewReader(stdin)

	out, err := cmd.Output()
	if err != nil {
		var status *exec.ExitError
		if errors.As(err, &status) {
			out = append(out, bytes.TrimSpace(status.Stderr)...)
		}
		t.Fatalf("selvage %s: %v\n%s", strings.Join(args, " "), err, out)
	}
	return out
}

// TryCommand runs a command that may fail. It returns standard output and standard error
// together.
func (s *Server) TryCommand(args ...string) (string, error) {
	cmd := exec.Command(s.binary, append(args, "--data", s.Data)...)
	cmd.Env = slices.Concat(os.Environ(), s.Backends, s.config.Env)
	out, err := cmd.CombinedOutput()
	return string(out), err
}
