package blob

import (
	"bufio"
	"io"
	"os"
	"os/exec"
	"slices"
	"strings"
	"testing"
)

// childEnv is an environment variable that makes the test binary run as a child process, which the
// test kills during a Put. Its value consists of the directory, the key and the step.
const childEnv = "SELVAGE_BLOB_CHILD"

func TestMain(m *testing.M) {
	if args := strings.Fields(os.Getenv(childEnv)); len(args) == 3 {
		hang(args[0], args[1], args[2])
	}
	os.Exit(m.Run())
}

// hang begins a Put and blocks in the given step until the process is killed.
func hang(dir, key, step string) {
	d, err := OpenDir(dir)
	if err != nil {
		panic(err)
	}

	block := func() {
		_, _ = os.Stdout.WriteString("here\n")
		_, _ = io.Copy(io.Discard, os.Stdin) // blocks: the test never closes it
	}
	write := func(f File) (map[string][]byte, error) {
		if step == "write" {
			defer block()
		}
		return filling("half a recording", "peaks")(f)
	}
	commit := func() (bool, error) {
		block()
		return true, nil
	}
	_ = d.Put(key, write, commit)
}

// TestSweepAfterKill shows that if a process is killed while writing, the next sweep in another
// process removes its file. While the writer is alive, sweeps spare the file.
func TestSweepAfterKill(t *testing.T) {
	tests := []struct {
		name    string
		step    string // the step in which the process is killed
		owned   bool   // whether a row owns the key
		written int    // number of files while the process is alive
		left    int    // number of files after it was killed
	}{
		{name: "killed while writing", step: "write", written: 1, left: 0},
		{name: "killed before the row is committed", step: "commit", written: 2, left: 0},
		{name: "killed after the row is committed", step: "commit", owned: true, written: 2, left: 2},
	}

	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			d, path := open(t)
			key := newKey(t)
			both := []string{key, key + ".peaks"}

			child := startChild(t, path, key, tt.step)
			if err := d.Sweep(t.Context(), using()); err != nil {
				t.Fatal(err)
			}
			if got, want := files(t, path), both[:tt.written]; !slices.Equal(got, want) {
				t.Errorf("files while the child lives: %q, want %q", got, want)
			}

			if err := child.Process.Kill(); err != nil {
				t.Fatal(err)
			}
			_ = child.Wait() // killed

			var rows []string
			if tt.owned {
				rows = []string{key}
			}
			if err := d.Sweep(t.Context(), using(rows...)); err != nil {
				t.Fatal(err)
			}
			if got, want := files(t, path), both[:tt.left]; !slices.Equal(got, want) {
				t.Errorf("files after the child was killed: %q, want %q", got, want)
			}
		})
	}
}

// startChild starts a process that is in the given step of a Put.
func startChild(t *testing.T, dir, key, step string) *exec.Cmd {
	t.Helper()
	child := exec.CommandContext(t.Context(), os.Args[0])
	child.Env = append(os.Environ(), childEnv+"="+dir+" "+key+" "+step)
	out, err := child.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	if _, err := child.StdinPipe(); err != nil {
		t.Fatal(err)
	}

	if err := child.Start(); err != nil {
		t.Fatal(err)
	}
	if line, err := bufio.NewReader(out).ReadString('\n'); line != "here\n" {
		t.Fatalf("the child printed %q, %v, want here", line, err)
	}
	return child
}
