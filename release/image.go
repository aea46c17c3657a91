package main

import (
	"archive/tar"
	"bytes"
	"encoding/pem"
	"io"
	"io/fs"
	"os"
	"path/filepath"

	v1 "github.com/google/go-containerregistry/pkg/v1"
	"github.com/google/go-containerregistry/pkg/v1/empty"
	"github.com/google/go-containerregistry/pkg/v1/layout"
	"github.com/google/go-containerregistry/pkg/v1/mutate"
	"github.com/google/go-containerregistry/pkg/v1/tarball"
	"github.com/google/go-containerregistry/pkg/v1/types"
	"golang.org/x/crypto/x509roots/fallback/bundle"
)

// account is the user and group ID of the server in the image. Hosts normally have no account with
// this ID.
const account = 65532

// image writes selvage_VERSION_oci.tar, an OCI image layout with an image for each architecture.
// Each image contains only the binary, the root certificates that browsers trust, and an account.
func (r release) image() error {
	index := mutate.IndexMediaType(empty.Index, types.OCIImageIndex)
	for _, arch := range architectures {
		img, err := r.imageOf(arch)
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
func (r release) imageOf(arch string) (v1.Image, error) {
	files, err := r.layer(arch)
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
	return mutate.ConfigFile(img, r.config(img, arch))
}

// config returns the image's configuration. The data directory is a volume. The server listens on
// all addresses. Therefore it does not create a demo, which it does only on loopback.
func (r release) config(img v1.Image, arch string) *v1.ConfigFile {
	config, err := img.ConfigFile()
	if err != nil {
		panic(err) // the image is in memory
	}

	config = config.DeepCopy()
	config.OS = "linux"
	config.Architecture = arch
	config.Created = v1.Time{Time: r.date}
	config.Config = v1.Config{
		User:       "65532:65532",
		WorkingDir: "/data",
		Entrypoint: []string{"/usr/bin/selvage"},
		Cmd:        []string{"serve"},
		Env: []string{
			"PATH=/usr/bin",
			"SELVAGE_DATA=/data",
			"SELVAGE_LISTEN=0.0.0.0:8080",
			"SELVAGE_LISTEN_OPS=0.0.0.0:9090",
		},
		ExposedPorts: map[string]struct{}{"8080/tcp": {}},
		Volumes:      map[string]struct{}{"/data": {}},
		Labels: map[string]string{
			"org.opencontainers.image.title":    "selvage",
			"org.opencontainers.image.version":  r.version,
			"org.opencontainers.image.revision": r.commit,
			"org.opencontainers.image.licenses": "Apache-2.0",
			"org.opencontainers.image.source":   "https://github.com/selvage/selvage",
		},
	}
	return config
}

// layer returns the files of the image for arch as a tar archive.
func (r release) layer(arch string) ([]byte, error) {
	binary, err := os.ReadFile(r.binary(arch))
	if err != nil {
		return nil, err
	}

	var roots bytes.Buffer
	for root := range bundle.Roots() {
		if root.Constraint == nil { // a PEM file cannot express constraints
			_ = pem.Encode(&roots, &pem.Block{Type: "CERTIFICATE", Bytes: root.Certificate}) // into memory
		}
	}

	var b bytes.Buffer
	w := tar.NewWriter(&b)
	for _, f := range []struct {
		name  string
		mode  int64
		owner int
		body  []byte
	}{
		{"data/", 0o700, account, nil},
		{"etc/", 0o755, 0, nil},
		{"etc/passwd", 0o644, 0, []byte("selvage:x:65532:65532::/data:/usr/bin/selvage\n")},
		{"etc/ssl/", 0o755, 0, nil},
		{"etc/ssl/certs/", 0o755, 0, nil},
		{"etc/ssl/certs/ca-certificates.crt", 0o644, 0, roots.Bytes()},
		{"tmp/", 0o1777, 0, nil},
		{"usr/", 0o755, 0, nil},
		{"usr/bin/", 0o755, 0, nil},
		{"usr/bin/selvage", 0o755, 0, binary},
	} {
		h := &tar.Header{
			Name:     f.name,
			Mode:     f.mode,
			Uid:      f.owner,
			Gid:      f.owner,
			Size:     int64(len(f.body)),
			ModTime:  r.date,
			Typeflag: tar.TypeReg,
		}
		if f.body == nil {
			h.Typeflag = tar.TypeDir
		}

		if err := w.WriteHeader(h); err != nil {
			return nil, err
		}
		if _, err := w.Write(f.body); err != nil {
			return nil, err
		}
	}
	return b.Bytes(), w.Close()
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
