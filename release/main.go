// Command release builds the release files: static binaries for amd64 and arm64, an OCI image
// layout, Debian packages, a bill of materials, the licenses of all linked modules, and checksums.
// It is a separate module, so that the server does not depend on modules that only a release needs.
//
//	go -C release run . -version v1.2.3 -out ../dist
//
// Builds are reproducible: the same commit results in the same bytes. With -twice, release builds
// everything again from a copy of the tree in another directory, and compares the results.
package main

import (
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"flag"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"slices"
	"strings"
	"time"
)

// A release describes what to build, and from which sources.
type release struct {
	root    string // root of the tree
	out     string
	version string
	commit  string
	date    time.Time // date of the commit
}

var architectures = []string{"amd64", "arm64"}

func main() {
	r := release{}
	flag.StringVar(&r.root, "root", "..", "source `directory`")
	flag.StringVar(&r.out, "out", "../dist", "output `directory`; it must be empty or missing")
	flag.StringVar(&r.version, "version", "", "`version` (default: the output of git describe)")
	twice := flag.Bool("twice", false, "build again in another directory, and compare")
	sbom := flag.String("sbom", "", "only write the bill of materials, to this `file`")
	flag.Func("arch", "architectures to build, separated by commas (default amd64,arm64)", func(list string) error {
		architectures = strings.Split(list, ",")
		return nil
	})
	flag.Parse()

	do := func() error { return run(r, *twice) }
	if *sbom != "" {
		do = func() error { return runBill(r, *sbom) }
	}
	if err := do(); err != nil {
		fmt.Fprintln(os.Stderr, "release:", err)
		os.Exit(1)
	}
}

func run(r release, twice bool) (err error) {
	if r.root, err = filepath.Abs(r.root); err != nil {
		return err
	}
	if r.out, err = filepath.Abs(r.out); err != nil {
		return err
	}

	if err := r.describe(); err != nil {
		return err
	}
	if err := r.make(); err != nil {
		return err
	}
	if twice {
		return r.again()
	}
	return nil
}

// runBill writes the bill of materials of a binary for this machine to a file.
func runBill(r release, file string) (err error) {
	if r.root, err = filepath.Abs(r.root); err != nil {
		return err
	}
	if err := r.describe(); err != nil {
		return err
	}

	if r.out, err = os.MkdirTemp("", "selvage-sbom-"); err != nil {
		return err
	}
	defer os.RemoveAll(r.out)
	architectures = []string{runtime.GOARCH}
	if err := errors.Join(r.binaries(), r.bill()); err != nil {
		return err
	}

	text, err := os.ReadFile(r.billFile())
	if err != nil {
		return err
	}
	if err := os.MkdirAll(filepath.Dir(file), 0o755); err != nil {
		return err
	}
	return os.WriteFile(file, text, 0o644)
}

// describe reads the version, commit and date from git.
func (r *release) describe() error {
	ask := func(args ...string) (string, error) {
		out, err := exec.Command("git", append([]string{"-C", r.root}, args...)...).Output()
		return strings.TrimSpace(string(out)), err
	}

	var errs [3]error
	var date string
	if r.version == "" {
		r.version, errs[0] = ask("describe", "--tags", "--always", "--dirty")
	}
	r.commit, errs[1] = ask("rev-parse", "HEAD")
	date, errs[2] = ask("show", "--no-patch", "--format=%cI", "HEAD")

	if err := errors.Join(errs[:]...); err != nil {
		return fmt.Errorf("reading version from git: %w", err)
	}
	at, err := time.Parse(time.RFC3339, date)
	r.date = at.UTC()
	return err
}

// make builds everything. Later steps use the results of earlier steps.
func (r release) make() error {
	some, err := os.ReadDir(r.out)
	if err == nil && len(some) > 0 {
		return fmt.Errorf("%s is not empty", r.out)
	}
	if err := os.MkdirAll(r.out, 0o755); err != nil {
		return err
	}

	for _, step := range []struct {
		what string
		do   func() error
	}{
		{"binaries", r.binaries}, {"licenses", r.licenses}, {"bill of materials", r.bill}, {"image", r.image},
		{"packages", r.packages}, {"checksums", r.checksums}, {"checks", r.check},
	} {
		begun := time.Now()
		if err := step.do(); err != nil {
			return fmt.Errorf("%s: %w", step.what, err)
		}
		fmt.Printf("%-20s %5.1f s\n", step.what, time.Since(begun).Seconds())
	}
	return nil
}

// binary returns the path of an architecture's binary.
func (r release) binary(arch string) string {
	return filepath.Join(r.out, fmt.Sprintf("selvage_%s_linux_%s", r.version, arch))
}

func (r release) binaries() error {
	stamp := fmt.Sprintf("-s -w -buildid= -X main.build=%s -X main.buildCommit=%s -X main.buildDate=%s",
		r.version, r.commit, r.date.Format(time.RFC3339))
	for _, arch := range architectures {
		cmd := exec.Command("go", "build", "-trimpath", "-tags", "grpcnotrace", "-buildvcs=false", "-ldflags", stamp,
			"-o", r.binary(arch), "./cmd/selvage")
		cmd.Dir, cmd.Stderr = r.root, os.Stderr
		cmd.Env = append(os.Environ(), "CGO_ENABLED=0", "GOOS=linux", "GOARCH="+arch,
			"GOFLAGS=-mod=readonly", "GOWORK=off")
		if err := cmd.Run(); err != nil {
			return fmt.Errorf("building for %s: %w", arch, err)
		}
	}
	return nil
}

// checksums writes SHA256SUMS in the format of sha256sum.
func (r release) checksums() error {
	sums, err := sumsOf(r.out)
	if err != nil {
		return err
	}
	return os.WriteFile(filepath.Join(r.out, "SHA256SUMS"), []byte(strings.Join(sums, "")), 0o644)
}

// sumsOf returns a checksum line for each file in a directory except SHA256SUMS.
func sumsOf(dir string) (lines []string, err error) {
	files, err := os.ReadDir(dir)
	if err != nil {
		return nil, err
	}

	for _, file := range files {
		if file.Name() == "SHA256SUMS" {
			continue
		}
		f, err := os.Open(filepath.Join(dir, file.Name()))
		if err != nil {
			return nil, err
		}

		h := sha256.New()
		_, err = io.Copy(h, f)
		if err := errors.Join(err, f.Close()); err != nil {
			return nil, err
		}
		lines = append(lines, hex.EncodeToString(h.Sum(nil))+"  "+file.Name()+"\n")
	}
	return lines, nil
}

// again builds everything from a copy of the tree in another directory, and compares the results.
func (r release) again() error {
	dir, err := os.MkdirTemp("", "selvage-again-")
	if err != nil {
		return err
	}
	defer os.RemoveAll(dir)

	other := r
	other.root, other.out = filepath.Join(dir, "elsewhere"), filepath.Join(dir, "dist")
	if err := os.CopyFS(other.root, tracked(r.root)); err != nil {
		return fmt.Errorf("copying the tree: %w", err)
	}
	if err := other.make(); err != nil {
		return err
	}

	first, err := sumsOf(r.out)
	if err != nil {
		return err
	}
	second, err := sumsOf(other.out)
	if err != nil {
		return err
	}

	if !slices.Equal(first, second) {
		return fmt.Errorf("the second build differs:\n%s\n%s", strings.Join(first, ""), strings.Join(second, ""))
	}
	fmt.Println("the second build is identical")
	return nil
}
