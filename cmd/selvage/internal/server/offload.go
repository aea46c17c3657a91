package server

import (
	"path/filepath"
	"strings"

	"github.com/selvage/selvage/cmd/selvage/internal/config"
	"github.com/selvage/selvage/internal/blob"
)

// accelPrefix is the location of nginx where the configuration names none.
const accelPrefix = "/selvage-media/"

// offload returns the header by which the server in front sends a file of the media
// directory, or nil where it is sent from here.
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
