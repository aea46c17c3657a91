package mp3

import (
	"crypto/sha256"
	"flag"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"github.com/selvage/selvage/test/servers"
)

var update = flag.Bool("update", false, "rewrite the golden hashes")

const golden = "testdata/golden.txt"

// TestGolden compares the hash of each format's bytes with the stored one. If you change the bytes
// on purpose, also change Version, and run the test with -update.
func TestGolden(t *testing.T) {
	got := "version " + Version + "\n"
	eachFormat(t, func(t *testing.T, rate, channels int) {
		data := encode(t, makeClip(rate, channels, rate))
		got += fmt.Sprintf("%d %d %x\n", rate, channels, sha256.Sum256(data))
	})

	if *update {
		if err := os.WriteFile(golden, []byte(got), 0o644); err != nil {
			t.Fatal(err)
		}
	}

	want, err := os.ReadFile(golden)
	if err != nil {
		t.Fatal(err)
	}
	if strings.SplitN(got, "\n", 2)[0] != strings.SplitN(string(want), "\n", 2)[0] {
		t.Fatal("Version has changed: run this test with -update")
	}
	if got != string(want) {
		t.Errorf("the bytes differ from those of version %s:\n%s", Version, got)
	}
}

// TestGoldenARM64 runs TestGolden as a program for arm64, because the compiler for arm64 fuses
// products and sums wherever the language allows it.
func TestGoldenARM64(t *testing.T) {
	emulator := tool(t, "qemu-aarch64")
	binary := filepath.Join(t.TempDir(), "mp3.test")
	build := exec.Command("go", "test", "-c", "-o", binary, ".")
	build.Env = append(os.Environ(), "GOOS=linux", "GOARCH=arm64", "CGO_ENABLED=0")
	if out, err := build.CombinedOutput(); err != nil {
		t.Fatalf("building for arm64: %v\n%s", err, out)
	}
	out, err := exec.Command(emulator, binary, "-test.run=^TestGolden$", "-test.v").CombinedOutput()
	if err != nil || !strings.Contains(string(out), "--- PASS: TestGolden/48000-2") {
		t.Errorf("TestGolden on arm64: %v\n%s", err, out)
	}
}

// tool returns the path of a program that checks MP3 files.
func tool(t testing.TB, name string) string {
	t.Helper()
	path, err := exec.LookPath(name)
	if err != nil {
		servers.Missing(t, name)
	}
	return path
}
