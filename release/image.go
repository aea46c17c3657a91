package main

import (
	"archive/tar"
	"bytes"
	"encoding/pem"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path"
	"path/filepath"
	"time"

	v1 "github.com/google/go-containerregistry/pkg/v1"
	"github.com/google/go-containerregistry/pkg/v1/empty"
	"github.com/google/go-containerregistry/pkg/v1/layout"
	"github.com/google/go-containerregistry/pkg/v1/mutate"
	"github.com/google/go-containerregistry/pkg/v1/tarball"
	"github.com/google/go-containerregistry/pkg/v1/types"
	"golang.org/x/crypto/x509roots/fallback/bundle"
)

// image writes selvage_VERSION_oci.tar, an OCI image layout with an image for each architecture.
// The Containerfile in deploy/image describes the images.
func (r release) image() error {
	recipe, err := readRecipe(filepath.Join(r.root, "deploy/image/Containerfile"))
	if err != nil {
		return err
	}

	index := mutate.IndexMediaType(empty.Index, types.OCIImageIndex)
	for _, arch := range architectures {
		img, err := r.imageOf(arch, recipe)
		if err != nil {
			return err
		}
		index = mutate.AppendManifests(index, mutate.IndexAddendum{
			Add: img,
			Descriptor: v1.Descriptor{
				MediaType:   types.OCIManifestSchema1,
				Platform:    &v1.Platform{OS: "linux", Architecture: arch},
				Annotations: map[string]string{"org.opencontainers.image.ref.name": r.version + "-" + arch},
			},
		})
	}

	dir, err := os.MkdirTemp("", "selvage-image-")
	if err != nil {
		return err
	}
	defer os.RemoveAll(dir)
	if _, err := layout.Write(dir, index); err != nil {
		return err
	}
	return r.pack(dir, filepath.Join(r.out, "selvage_"+r.version+"_oci.tar"))
}

// imageOf returns the image for an architecture. It has one layer.
func (r release) imageOf(arch string, recipe recipe) (v1.Image, error) {
	files, err := r.layer(arch, recipe.copies)
	if err != nil {
		return nil, err
	}

	open := func() (io.ReadCloser, error) { return io.NopCloser(bytes.NewReader(files)), nil }
	layer, err := tarball.LayerFromOpener(open, tarball.WithMediaType(types.OCILayer))
	if err != nil {
		return nil, err
	}

	base := mutate.ConfigMediaType(mutate.MediaType(empty.Image, types.OCIManifestSchema1), types.OCIConfigJSON)
	history := v1.History{Created: v1.Time{Time: r.date}, CreatedBy: "selvage " + r.version}
	img, err := mutate.Append(base, mutate.Addendum{Layer: layer, History: history})
	if err != nil {
		return nil, err
	}
	return mutate.ConfigFile(img, r.config(img, arch, recipe.config))
}

// config returns the image's configuration.
func (r release) config(img v1.Image, arch string, config v1.Config) *v1.ConfigFile {
	file, err := img.ConfigFile()
	if err != nil {
		panic(err) // the image is in memory
	}

	file = file.DeepCopy()
	file.OS = "linux"
	file.Architecture = arch
	file.Created = v1.Time{Time: r.date}
	file.Config = config
	file.Config.Labels = map[string]string{
		"org.opencontainers.image.title":    "selvage",
		"org.opencontainers.image.version":  r.version,
		"org.opencontainers.image.revision": r.commit,
		"org.opencontainers.image.licenses": "Apache-2.0",
		"org.opencontainers.image.source":   "https://github.com/selvage/selvage",
	}
	return file
}

// layer returns the files of the image for arch as a tar archive.
func (r release) layer(arch string, copies []copiedFile) ([]byte, error) {
	binary, err := os.ReadFile(r.binary(arch))
	if err != nil {
		return nil, err
	}
	context := map[string][]byte{
		"selvage":             binary,
		"passwd":              []byte("selvage:x:65532:65532::/data:/usr/bin/selvage\n"),
		"ca-certificates.crt": rootCertificates(),
		"data":                nil,
		"tmp":                 nil,
	}

	var b bytes.Buffer
	layer := layer{Writer: tar.NewWriter(&b), date: r.date, has: make(map[string]bool)}
	for _, c := range copies {
		body, ok := context[c.from]
		if !ok {
			return nil, fmt.Errorf("the Containerfile copies %s, which is not part of a release", c.from)
		}
		if err := layer.add(c, body); err != nil {
			return nil, err
		}
	}
	if err := layer.Close(); err != nil {
		return nil, err
	}
	return b.Bytes(), nil
}

// rootCertificates returns the root certificates that browsers trust, in PEM form.
func rootCertificates() []byte {
	var roots bytes.Buffer
	for root := range bundle.Roots() {
		if root.Constraint == nil { // a PEM file cannot express constraints
			_ = pem.Encode(&roots, &pem.Block{Type: "CERTIFICATE", Bytes: root.Certificate}) // into memory
		}
	}
	return roots.Bytes()
}

// A layer writes the files of an image.
type layer struct {
	*tar.Writer
	date time.Time
	has  map[string]bool // paths of the directories that were written
}

// add writes a file and the directories above it. If body is nil, it writes a directory instead of a
// file.
func (l layer) add(c copiedFile, body []byte) error {
	if above := path.Dir(c.to); above != "." && !l.has[above] {
		if err := l.add(copiedFile{to: above, mode: 0o755}, nil); err != nil {
			return err
		}
	}

	h := &tar.Header{
		Name:     c.to,
		Mode:     c.mode,
		Uid:      c.owner,
		Gid:      c.owner,
		Size:     int64(len(body)),
		ModTime:  l.date,
		Typeflag: tar.TypeReg,
	}
	if body == nil {
		h.Name += "/"
		h.Typeflag = tar.TypeDir
		l.has[c.to] = true
	}
	if err := l.WriteHeader(h); err != nil {
		return err
	}
	_, err := l.Write(body)
	return err
}

// pack writes dir to file as a reproducible tar archive.
func (r release) pack(dir, file string) error {
	f, err := os.Create(file)
	if err != nil {
		return err
	}
	defer f.Close()

	w := tar.NewWriter(f)
	err = filepath.WalkDir(dir, func(path string, e fs.DirEntry, err error) error {
		if err != nil || e.IsDir() {
			return err
		}

		body, err := os.ReadFile(path)
		if err != nil {
			return err
		}

		name, err := filepath.Rel(dir, path)
		if err != nil {
			return err
		}
		h := &tar.Header{Name: filepath.ToSlash(name), Mode: 0o644, Size: int64(len(body)), ModTime: r.date}
		if err := w.WriteHeader(h); err != nil {
			return err
		}
		_, err = w.Write(body)
		return err
	})
	if err != nil {
		return err
	}

	if err := w.Close(); err != nil {
		return err
	}
	return f.Close()
}
