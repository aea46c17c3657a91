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

	v1 "github.com/google/go-containerregistry/pkg/v1"
	"github.com/google/go-containerregistry/pkg/v1/layout"
	"github.com/google/go-containerregistry/pkg/v1/mutate"
)

// checkInstalled installs the package for this architecture and runs the image, both in a copy of
// this machine (installed.sh). dir contains the unpacked image layout. If this machine cannot do
// that, checkInstalled prints the reason. In CI, that is an error.
func (r release) checkInstalled(dir string) error {
	if err := checkRequirements(); err != nil {
		if os.Getenv("CI") != "" {
			return fmt.Errorf("the release cannot be installed here: %w", err)
		}
		fmt.Println("package and image were not installed:", err)
		return nil
	}

	packages, err := filepath.Glob(filepath.Join(r.out, "*_"+runtime.GOARCH+".deb"))
	if err != nil || len(packages) != 1 {
		return fmt.Errorf("found %d packages for %s, want 1", len(packages), runtime.GOARCH)
	}
	root := filepath.Join(dir, "root")
	if err := unpackImage(filepath.Join(dir, "image"), root); err != nil {
		return fmt.Errorf("unpacking the image: %w", err)
	}

	script := filepath.Join(r.root, "release", "installed.sh")
	out, err := exec.Command("unshare", "--mount", "--pid", "--fork", "--kill-child",
		"sh", script, packages[0], root).CombinedOutput()
	if err != nil {
		return fmt.Errorf("%w\n%s", err, out)
	}
	return nil
}

// checkRequirements returns an error that names the missing requirement of checkInstalled: root,
// overlayfs, or a program such as dpkg.
func checkRequirements() error {
	if os.Geteuid() != 0 {
		return errors.New("root is required")
	}
	for _, program := range []string{"dpkg", "dpkg-deb", "adduser", "unshare", "chroot"} {
		if _, err := exec.LookPath(program); err != nil {
			return err
		}
	}

	known, err := os.ReadFile("/proc/filesystems")
	if err == nil && !strings.Contains(string(known), "\toverlay\n") {
		err = errors.New("this kernel has no overlayfs")
	}
	if err != nil {
		return err
	}
	return exec.Command("unshare", "--mount", "--pid", "--fork", "true").Run()
}

// unpackImage writes the files of the image for this architecture to root. It writes the image's user,
// environment and command to files next to root.
func unpackImage(from, root string) error {
	index, err := layout.ImageIndexFromPath(from)
	if err != nil {
		return err
	}
	manifest, err := index.IndexManifest()
	if err != nil {
		return err
	}

	for _, one := range manifest.Manifests {
		if one.Platform.Architecture != runtime.GOARCH {
			continue
		}
		image, err := index.Image(one.Digest)
		if err != nil {
			return err
		}
		config, err := image.ConfigFile()
		if err != nil {
			return err
		}

		files := mutate.Extract(image)
		defer files.Close()
		return errors.Join(unpackFiles(tar.NewReader(files), root), describeRun(config.Config, root))
	}
	return fmt.Errorf("no image for %s", runtime.GOARCH)
}

// describeRun writes the user, environment and command of an image to files that a shell can read.
func describeRun(config v1.Config, root string) error {
	var errs []error
	for name, words := range map[string][]string{
		"user":    {config.User},
		"env":     config.Env,
		"command": append(config.Entrypoint, config.Cmd...),
	} {
		errs = append(errs, os.WriteFile(root+"."+name, []byte(strings.Join(words, " ")), 0o600))
	}
	return errors.Join(errs...)
}

// unpackFiles unpacks directories and files with their owners and modes.
func unpackFiles(in *tar.Reader, root string) error {
	if err := os.MkdirAll(root, 0o755); err != nil {
		return err
	}
	for {
		h, err := in.Next()
		if err == io.EOF {
			return nil
		}
		if err != nil {
			return err
		}

		name := filepath.Join(root, filepath.Clean("/"+h.Name))
		if h.Typeflag == tar.TypeDir {
			err = os.MkdirAll(name, 0o755)
		} else {
			body, readErr := io.ReadAll(in)
			err = errors.Join(readErr, os.MkdirAll(filepath.Dir(name), 0o755), os.WriteFile(name, body, 0o600))
		}
		if err := errors.Join(err, os.Chown(name, h.Uid, h.Gid), os.Chmod(name, h.FileInfo().Mode())); err != nil {
			return err
		}
	}
}
