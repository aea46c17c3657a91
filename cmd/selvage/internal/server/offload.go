package server

import (
	"path/filepath"
	"strings"

	"github.com/selvage/selvage/cmd/selvage/internal/config"
	"github.com/selvage/selvage/internal/blob"
)

// accelPrefix is the default prefix for nginx, which is the path of a location.
const accelPrefix = "/selvage-media/"

// newOffload returns a function that maps a file of the media directory to the header with which the
// proxy in front sends it. It returns nil if this server sends the files itself.
func newOffload(c config.Config) (func(key string) (header, value string), error) {
	prefix := c.Recordings.OffloadPrefix
	switch c.Recordings.Offload {
	case config.OffloadXAR:
		if prefix == "" {
			prefix = accelPrefix
		}
		prefix = strings.TrimSuffix(prefix, "/") + "/"
		return func(key string) (string, string) { return "X-Accel-Redirect", prefix + blob.Name(key) }, nil
	case config.OffloadSend:
		if prefix == "" {
			prefix = c.MediaDir()
		}
		dir, err := filepath.Abs(prefix)
		return func(key string) (string, string) { return "X-Sendfile", filepath.Join(dir, blob.Name(key)) }, err
	}

	return nil, nil
}
