package main

import (
	"archive/tar"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"strings"

	"github.com/google/go-containerregistry/pkg/v1/layout"
	"github.com/google/go-containerregistry/pkg/v1/validate"
)

// check tests the release as users would use it.
func (r release) check() error {
	dir, err := os.MkdirTemp("", "selvage-check-")
	if err != nil {
		return err
	}
	defer os.RemoveAll(dir)
	return errors.Join(
		r.checkImage(filepath.Join(dir, "image")),
		r.checkPackages(dir),
		r.checkBinaries(),
		r.checkInstalled(dir),
	)
}

// checkImage unpacks the image layout and verifies every digest in it.
func (r release) checkImage(dir string) error {
	f, err := os.Open(filepath.Join(r.out, "selvage_"+r.version+"_oci.tar"))
	if err != nil {
		return err
	}
	defer f.Close()

	for in := tar.NewReader(f); ; {
		h, err := in.Next()
		if err == io.EOF {
			break
		}
		if err != nil {
			return err
		}
		body, err := io.ReadAll(in)
		if err != nil {
			return err
		}

		name := filepath.Join(dir, filepath.Clean("/"+h.Name))
		if err := errors.Join(os.MkdirAll(filepath.Dir(name), 0o755), os.WriteFile(name, body, 0o644)); err != nil {
			return err
		}
	}

	index, err := layout.ImageIndexFromPath(dir)
	if err != nil {
		return err
	}
	if err := validate.Index(index); err != nil {
		return fmt.Errorf("the image layout is invalid: %w", err)
	}
	return nil
}

// checkPackages unpacks the packages with dpkg, if it is installed, and runs their binaries.
func (r release) checkPackages(dir string) error {
	debs, err := filepath.Glob(filepath.Join(r.out, "*.deb"))
	if err != nil || len(debs) != len(architectures) {
		return fmt.Errorf("found %d packages, want %d", len(debs), len(architectures))
	}
	if _, err := exec.LookPath("dpkg-deb"); err != nil {
		fmt.Println("dpkg-deb is missing: the packages were not checked")
		return nil
	}

	for i, arch := range architectures {
		deb := debs[i]
		into := filepath.Join(dir, arch)
		if out, err := exec.Command("dpkg-deb", "-x", deb, into).CombinedOutput(); err != nil {
			return fmt.Errorf("unpacking %s: %s", deb, out)
		}
		for _, name := range []string{
			"etc/selvage/selvage.yaml",
			"usr/lib/systemd/system/selvage.service",
			"usr/share/man/man1/selvage.1",
		} {
			if _, err := os.Stat(filepath.Join(into, name)); err != nil {
				return err
			}
		}
		if err := r.checkVersion(filepath.Join(into, "usr/bin/selvage"), arch); err != nil {
			return err
		}
	}
	return nil
}

// checkBinaries runs the binary of each architecture.
func (r release) checkBinaries() error {
	var errs []error
	for _, arch := range architectures {
		errs = append(errs, r.checkVersion(r.binary(arch), arch))
	}
	return errors.Join(errs...)
}

// checkVersion runs a binary and checks the version that it prints. It uses qemu for other
// architectures.
func (r release) checkVersion(binary, arch string) error {
	args := []string{binary, "version"}
	if arch != runtime.GOARCH {
		emulator := map[string]string{"arm64": "qemu-aarch64", "amd64": "qemu-x86_64"}[arch]
		if _, err := exec.LookPath(emulator); err != nil {
			fmt.Printf("%s is missing: the binary for %s was not run\n", emulator, arch)
			return nil
		}
		args = append([]string{emulator}, args...)
	}

	out, err := exec.Command(args[0], args[1:]...).Output()
	if err != nil {
		return fmt.Errorf("running the binary for %s: %w", arch, err)
	}
	want := "selvage " + r.version + " (commit " + r.commit
	if !strings.HasPrefix(string(out), want) {
		return fmt.Errorf("the binary for %s printed %s, want %s…", arch, out, want)
	}
	return nil
}
