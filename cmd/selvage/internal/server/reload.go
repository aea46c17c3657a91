package server

import (
	"log/slog"
	"strings"
)

// reload reads the configuration anew and takes from it what can change while
// the server runs. What is wrong in it changes nothing.
func (s *server) reload() {
	conf, err := s.given.Reload()
	if err == nil && s.certs != nil {
		err = s.certs.Reload()
	}
	if err != nil {
		s.log.Error("reloading; everything stays as it was", "error", err)
		return
	}
	s.level.Set(slog.Level(conf.Log.Level))
	s.app.IDP.SetLifetimes(lifetimes(conf))
	s.app.limits.Set(rates(conf))
	s.app.proxies.Set(conf.TrustedProxies.Prefixes())
	const done = "reloaded the certificate, the log level, lifetimes, limits and trusted proxies"
	level := slog.String("log_level", conf.Log.Level.String())
	if keys := conf.NeedRestart(s.app.Config); len(keys) > 0 {
		s.log.Warn(done+"; other settings that have changed need a restart", level, "changed",
			strings.Join(keys, " "))
		return
	}
	s.log.Info(done, level)
}
