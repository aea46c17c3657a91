package server

import (
	"path/filepath"
	"strings"

	"github.com/selvage/selvage/cmd/selvage/internal/config"
	"github.com/selvage/selvage/internal/blob"
)

// accelPrefix is the default location of nginx.
const accelPrefix = "/selvage-media/"

// offload returns a function for the header that makes the proxy in front send a file of the
// media directory, or nil if this server sends it.
func offload(c config.Config) (func(key string) (header, value string), error) {
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
