package main

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"runtime"
	"slices"
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
	for _, arch := range architectures {
		binary := r.file(r.binary(arch), "/usr/bin/selvage", 0o755)
		contents := append(files.Contents{binary}, shared...)
		if err := r.writePackage(r.packageInfo(arch, contents)); err != nil {
			return err
		}
	}
	return nil
}

// writePackage writes the Debian package that info describes.
func (r release) writePackage(info *nfpm.Info) error {
	packager, err := nfpm.Get("deb")
	if err != nil {
		return err
	}
	if err := nfpm.PrepareForPackager(info, "deb"); err != nil {
		return err
	}

	f, err := os.Create(filepath.Join(r.out, packager.ConventionalFileName(info)))
	if err != nil {
		return err
	}
	err = packager.Package(info, f)
	return errors.Join(err, f.Close())
}

// numbered matches versions that begin with a number, apart from a leading v.
var numbered = regexp.MustCompile(`^v?\d`)

// debianVersion returns the version in a form that Debian sorts correctly: versions without a number, such
// as commits, come before all numbered versions, in the order of their dates.
func (r release) debianVersion() string {
	if numbered.MatchString(r.version) && strings.Contains(r.version, ".") {
		return strings.TrimPrefix(r.version, "v")
	}
	return "0.0.0~" + r.date.Format("20060102150405") + "." + strings.ReplaceAll(r.version, "-", ".")
}

// description is the package's description: a line, and then a paragraph.
const description = "Subscriber identity, fabric tokens and call recordings\n" +
	"An OpenID Connect provider, the auth server of a Call Fabric API, and a recordings\n" +
	"archive that LaML clients read, in one binary."

// packageInfo describes the package for an architecture.
func (r release) packageInfo(arch string, contents files.Contents) *nfpm.Info {
	deb := filepath.Join(r.root, "release", "deb")
	scripts := nfpm.Scripts{
		PostInstall: filepath.Join(deb, "postinst"),
		PreRemove:   filepath.Join(deb, "prerm"),
		PostRemove:  filepath.Join(deb, "postrm"),
	}

	return nfpm.WithDefaults(&nfpm.Info{
		Name:          "selvage",
		Arch:          arch,
		Platform:      "linux",
		Version:       r.debianVersion(),
		VersionSchema: "none",
		Section:       "net",
		Priority:      "optional",
		License:       "Apache-2.0",
		MTime:         r.date,
		Maintainer:    "The selvage authors <packages@selvage.invalid>",
		Homepage:      "https://github.com/selvage/selvage",
		Description:   description,
		Overridables: nfpm.Overridables{
			Depends:    []string{"adduser"},
			Recommends: []string{"ca-certificates"},
			Contents:   contents,
			Scripts:    scripts,
		},
	})
}

// file returns a file of a package. The file belongs to root and has the date of the release.
func (r release) file(source, destination string, mode fs.FileMode) *files.Content {
	return &files.Content{
		Source:      source,
		Destination: destination,
		FileInfo: &files.ContentFileInfo{
			Owner: "root",
			Group: "root",
			Mode:  mode,
			MTime: r.date,
		},
	}
}

// sharedFiles returns the files that are the same for every architecture. It writes generated files
// to dir.
func (r release) sharedFiles(dir string) (files.Contents, error) {
	completions, err := r.completions(dir)
	if err != nil {
		return nil, err
	}
	pages, err := r.manualPages(filepath.Join(dir, "man"))
	if err != nil {
		return nil, err
	}

	deb := filepath.Join(r.root, "release", "deb")
	config := r.file(filepath.Join(deb, "selvage.yaml"), "/etc/selvage/selvage.yaml", 0o644)
	config.Type = files.TypeConfigNoReplace
	fixed := files.Contents{
		config,
		r.file(filepath.Join(deb, "selvage.service"), "/usr/lib/systemd/system/selvage.service", 0o644),
		r.file(filepath.Join(r.out, "LICENSES.txt"), "/usr/share/doc/selvage/LICENSES.txt", 0o644),
		r.file(filepath.Join(r.root, "LICENSE"), "/usr/share/doc/selvage/copyright", 0o644),
	}
	return slices.Concat(fixed, completions, pages), nil
}

// completions generates the completions of each shell in dir.
func (r release) completions(dir string) (files.Contents, error) {
	destinations := map[string]string{
		"bash": "/usr/share/bash-completion/completions/selvage",
		"zsh":  "/usr/share/zsh/vendor-completions/_selvage",
		"fish": "/usr/share/fish/vendor_completions.d/selvage.fish",
	}

	var all files.Contents
	for shell, destination := range destinations {
		text, err := exec.Command(r.binary(runtime.GOARCH), "completion", shell).Output()
		if err != nil {
			return nil, fmt.Errorf("completions for %s: %w", shell, err)
		}
		source := filepath.Join(dir, shell)
		if err := os.WriteFile(source, text, 0o644); err != nil {
			return nil, err
		}
		all = append(all, r.file(source, destination, 0o644))
	}
	return all, nil
}

// manualPages generates the manual pages in dir.
func (r release) manualPages(dir string) (files.Contents, error) {
	if err := exec.Command(r.binary(runtime.GOARCH), "man", dir).Run(); err != nil {
		return nil, fmt.Errorf("manual pages: %w", err)
	}
	pages, err := filepath.Glob(filepath.Join(dir, "*.1"))
	if err != nil {
		return nil, err
	}

	var all files.Contents
	for _, page := range pages {
		all = append(all, r.file(page, "/usr/share/man/man1/"+filepath.Base(page), 0o644))
	}
	return all, nil
}
