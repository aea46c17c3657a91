package main

import (
	"fmt"
	"io/fs"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"runtime"
	"strings"

	"github.com/goreleaser/nfpm/v2"
	_ "github.com/goreleaser/nfpm/v2/deb"
	"github.com/goreleaser/nfpm/v2/files"
)

// packages writes a Debian package for each architecture, with the binary, its systemd unit,
// manual pages and completions.
func (r release) packages() error {
	dir, err := os.MkdirTemp("", "selvage-packages-")
	if err != nil {
		return err
	}
	defer os.RemoveAll(dir)
	shared, err := r.sharedFiles(dir)
	if err != nil {
		return err
	}

	packager, err := nfpm.Get("deb")
	if err != nil {
		return err
	}

	for _, arch := range architectures {
		info := r.info(arch, append(files.Contents{r.file(r.binary(arch), "/usr/bin/selvage", 0o755)}, shared...))
		if err := nfpm.PrepareForPackager(info, "deb"); err != nil {
			return err
		}

		f, err := os.Create(filepath.Join(r.out, packager.ConventionalFileName(info)))
		if err != nil {
			return err
		}
		defer f.Close()
		if err := packager.Package(info, f); err != nil {
			return err
		}
		if err := f.Close(); err != nil {
			return err
		}
	}
	return nil
}

// numbered matches versions that begin with a number, apart from a leading v.
var numbered = regexp.MustCompile(`^v?\d`)

// debianVersion returns the version in a form that Debian sorts correctly. Untagged versions sort
// by time, before all tagged versions.
func (r release) debianVersion() string {
	if numbered.MatchString(r.version) && strings.Contains(r.version, ".") {
		return strings.TrimPrefix(r.version, "v")
	}
	return "0.0.0~" + r.date.Format("20060102150405") + "." + strings.ReplaceAll(r.version, "-", ".")
}

func (r release) info(arch string, contents files.Contents) *nfpm.Info {
	deb := filepath.Join(r.root, "release", "deb")
	return nfpm.WithDefaults(&nfpm.Info{
		Name: "selvage", Arch: arch, Platform: "linux", Version: r.debianVersion(), VersionSchema: "none",
		Section: "net", Priority: "optional", License: "Apache-2.0", MTime: r.date,
		Maintainer: "The selvage authors <packages@selvage.invalid>",
		Homepage:   "https://github.com/selvage/selvage",
		Description: "Subscriber identity, fabric tokens and call recordings\n" +
			"An OpenID Connect provider, the auth server of a Call Fabric API, and a recordings\n" +
			"archive that LaML clients read, in one binary.",
		Overridables: nfpm.Overridables{
			Depends: []string{"adduser"}, Recommends: []string{"ca-certificates"}, Contents: contents,
			Scripts: nfpm.Scripts{
				PostInstall: filepath.Join(deb, "postinst"),
				PreRemove:   filepath.Join(deb, "prerm"),
				PostRemove:  filepath.Join(deb, "postrm"),
			},
		},
	})
}

func (r release) file(source, destination string, mode fs.FileMode) *files.Content {
	info := &files.ContentFileInfo{Owner: "root", Group: "root", Mode: mode, MTime: r.date}
	return &files.Content{Source: source, Destination: destination, FileInfo: info}
}

// sharedFiles returns the files that are the same for every architecture. They include the
// completions and manual pages, which the binary generates.
func (r release) sharedFiles(dir string) (files.Contents, error) {
	deb := filepath.Join(r.root, "release", "deb")
	config := r.file(filepath.Join(deb, "selvage.yaml"), "/etc/selvage/selvage.yaml", 0o644)
	config.Type = files.TypeConfigNoReplace
	all := files.Contents{
		config,
		r.file(filepath.Join(deb, "selvage.service"), "/usr/lib/systemd/system/selvage.service", 0o644),
		r.file(filepath.Join(r.out, "LICENSES.txt"), "/usr/share/doc/selvage/LICENSES.txt", 0o644),
		r.file(filepath.Join(r.root, "LICENSE"), "/usr/share/doc/selvage/copyright", 0o644),
	}

	own := r.binary(runtime.GOARCH)
	for shell, destination := range map[string]string{
		"bash": "/usr/share/bash-completion/completions/selvage",
		"zsh":  "/usr/share/zsh/vendor-completions/_selvage",
		"fish": "/usr/share/fish/vendor_completions.d/selvage.fish",
	} {
		text, err := exec.Command(own, "completion", shell).Output()
		if err != nil {
			return nil, fmt.Errorf("completions for %s: %w", shell, err)
		}
		if err := os.WriteFile(filepath.Join(dir, shell), text, 0o644); err != nil {
			return nil, err
		}
		all = append(all, r.file(filepath.Join(dir, shell), destination, 0o644))
	}

	if err := exec.Command(own, "man", filepath.Join(dir, "man")).Run(); err != nil {
		return nil, fmt.Errorf("manual pages: %w", err)
	}
	pages, err := filepath.Glob(filepath.Join(dir, "man", "*.1"))
	for _, page := range pages {
		all = append(all, r.file(page, "/usr/share/man/man1/"+filepath.Base(page), 0o644))
	}
	return all, err
}
