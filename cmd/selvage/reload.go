package main

import (
	"log/slog"
	"reflect"
	"strings"

	"github.com/spf13/cobra"
)

// reload reads the configuration anew and takes from it what can change while
// the server runs. What is wrong in it changes nothing.
func (s *server) reload(c *cli, cmd *cobra.Command) {
	config, _, err := c.loadConfig(cmd.Flags())
	if err == nil && s.certs != nil {
		err = s.certs.Reload()
	}
	if err != nil {
		s.log.Error("reloading; everything stays as it was", "error", err)
		return
	}
	s.level.Set(slog.Level(config.Log.Level))
	s.app.idp.SetLifetimes(config.lifetimes())
	s.app.limits.Set(config.rates())
	s.app.proxies.Set(config.TrustedProxies.prefixes())
	const done = "reloaded the certificate, the log level, lifetimes, limits and trusted proxies"
	level := slog.String("log_level", config.Log.Level.String())
	if keys := needRestart(s.app.config, config); len(keys) > 0 {
		s.log.Warn(done+"; other settings that have changed need a restart", level, "changed", strings.Join(keys, " "))
		return
	}
	s.log.Info(done, level)
}

// needRestart lists the keys that differ and are read at the start alone.
func needRestart(was, is Config) (keys []string) {
	a, b := reflect.ValueOf(was), reflect.ValueOf(is)
	for _, s := range settings() {
		if !s.reload && !reflect.DeepEqual(fieldOf(a, s.path).Interface(), fieldOf(b, s.path).Interface()) {
			keys = append(keys, s.path)
		}
	}
	return keys
}
