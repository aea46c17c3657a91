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

// childEnv is an environment variable that makes the test binary a child process, which is to be
// killed during a Put. Its value consists of the directory, the key and the step.
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

	stay := func() {
		_, _ = os.Stdout.WriteString("here\n")
		_, _ = io.Copy(io.Discard, os.Stdin) // blocks: the test never closes it
	}

	_ = d.Put(key, func(f File) (map[string][]byte, error) {
		if step == "write" {
			defer stay()
		}
		return filling("half a recording", "peaks")(f)
	}, func() (bool, error) {
		stay()
		return true, nil
	})
}

// TestSweepAfterKill shows that if a process is killed while writing, the next sweep in another
// process removes its file. While the writer is alive, sweeps spare the file.
func TestSweepAfterKill(t *testing.T) {
	tests := []struct {
		step string // the step in which the process is killed
		row  bool   // whether a row owns the key
		left bool
	}{
		{"write", false, false},
		{"commit", false, false},
		{"commit", true, true},
	}

	for _, tt := range tests {
		d, path := open(t)
		key := newKey(t)

		child := exec.CommandContext(t.Context(), os.Args[0])
		child.Env = append(os.Environ(), childEnv+"="+path+" "+key+" "+tt.step)
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

		if err := d.Sweep(t.Context(), using()); err != nil {
			t.Fatal(err)
		}
		written := []string{key}
		if tt.step == "commit" {
			written = append(written, key+".peaks")
		}
		if got := files(t, path); !slices.Equal(got, written) {
			t.Errorf("%s: files while the child lives: %q, want %q", tt.step, got, written)
		}

		if err := child.Process.Kill(); err != nil {
			t.Fatal(err)
		}
		_ = child.Wait() // killed

		var rows []string
		if tt.row {
			rows = []string{key}
		}
		if err := d.Sweep(t.Context(), using(rows...)); err != nil {
			t.Fatal(err)
		}

		if left := len(files(t, path)) == 2; left != tt.left {
			t.Errorf("killed in %s, row %v: file exists %v, want %v", tt.step, tt.row, left, tt.left)
		}
	}
}
