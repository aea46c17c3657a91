package config

import (
	"errors"
	"fmt"
	"slices"
	"strings"
)

// offloading is how whole files of recordings are left to the server in front.
type offloading string

// The ways.
const (
	offloadOff  offloading = "off"
	OffloadXAR  offloading = "x-accel-redirect"
	OffloadSend offloading = "x-sendfile"
)

func (o *offloading) UnmarshalText(text []byte) error {
	*o = offloading(text)
	if !slices.Contains([]offloading{offloadOff, OffloadXAR, OffloadSend}, *o) {
		return errors.New("needs off, x-accel-redirect or x-sendfile")
	}
	return nil
}

// checkOffload refuses a prefix that leads nowhere.
func (c Config) checkOffload(from Origins) error {
	prefix := c.Recordings.OffloadPrefix
	switch {
	case prefix == "":
	case c.Recordings.Offload == offloadOff:
		return errors.New(from.keyAt("recordings.offload_prefix") + " is set and recordings.offload is off: say which server it is for")
	case !strings.HasPrefix(prefix, "/") || strings.ContainsAny(prefix, " ?#%\r\n"):
		return fmt.Errorf("%s needs a path from the root, such as /selvage-media/; it is %q",
			from.keyAt("recordings.offload_prefix"), prefix)
	}
	return nil
}
