package server

import (
	"path/filepath"
	"strings"

	"github.com/selvage/selvage/cmd/selvage/internal/config"
	"github.com/selvage/selvage/internal/blob"
)

// accelPrefix is the default prefix for nginx. It is the path of a location.
const accelPrefix = "/selvage-media/"

// newOffload returns a function that maps a file in the media directory to a response header. The
// proxy in front then sends the file. newOffload returns nil if this server sends the files itself.
func newOffload(c config.Config) (func(key string) (header, value string), error) {
	prefix := c.Recordings.OffloadPrefix
	switch c.Recordings.Offload {
	case config.OffloadXAR:
		if prefix == "" {
			prefix = accelPrefix
		}
		prefix = strings.TrimSuffix(prefix, "/") + "/"
		return func(key string) (string, string) {
			return "X-Accel-Redirect", prefix + blob.Name(key)
		}, nil
	case config.OffloadSend:
		if prefix == "" {
			prefix = c.MediaDir()
		}
		dir, err := filepath.Abs(prefix)
		if err != nil {
			return nil, err
		}
		return func(key string) (string, string) {
			return "X-Sendfile", filepath.Join(dir, blob.Name(key))
		}, nil
	}
	return nil, nil
}
