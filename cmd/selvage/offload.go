package main

import (
	"errors"
	"path/filepath"
	"slices"
	"strings"

	"github.com/selvage/selvage/internal/blob"
)

// offloading is how whole files of recordings are left to the server in front.
type offloading string

// The ways.
const (
	offloadOff  offloading = "off"
	offloadXAR  offloading = "x-accel-redirect"
	offloadSend offloading = "x-sendfile"
)

func (o *offloading) UnmarshalText(text []byte) error {
	*o = offloading(text)
	if !slices.Contains([]offloading{offloadOff, offloadXAR, offloadSend}, *o) {
		return errors.New("needs off, x-accel-redirect or x-sendfile")
	}
	return nil
}

// accelPrefix is the location of nginx where the configuration names none.
const accelPrefix = "/selvage-media/"

// offload gives the header by which the server in front sends a file of the media
// directory, or nil where it is sent from here.
func (c Config) offload() (func(key string) (header, value string), error) {
	prefix := c.Recordings.OffloadPrefix
	switch c.Recordings.Offload {
	case offloadXAR:
		if prefix == "" {
			prefix = accelPrefix
		}
		prefix = strings.TrimSuffix(prefix, "/") + "/"
		return func(key string) (string, string) { return "X-Accel-Redirect", prefix + blob.Name(key) }, nil
	case offloadSend:
		if prefix == "" {
			prefix = c.mediaDir()
		}
		dir, err := filepath.Abs(prefix)
		return func(key string) (string, string) { return "X-Sendfile", filepath.Join(dir, blob.Name(key)) }, err
	}
	return nil, nil
}

// checkOffload refuses a prefix that leads nowhere.
func (c Config) checkOffload(from origins) error {
	prefix := c.Recordings.OffloadPrefix
	switch {
	case prefix == "":
	case c.Recordings.Offload == offloadOff:
		return errors.New(from.keyAt("recordings.offload_prefix") + " is set and recordings.offload is off: say which server it is for")
	case !strings.HasPrefix(prefix, "/") || strings.ContainsAny(prefix, " ?#%\r\n"):
		return errors.New(from.keyAt("recordings.offload_prefix") + " needs a path from the root, such as /selvage-media/; it is \"" + printable(prefix) + "\"")
	}
	return nil
}
