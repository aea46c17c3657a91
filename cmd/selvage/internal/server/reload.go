package server

import (
	"log/slog"
	"strings"

	"github.com/selvage/selvage/cmd/selvage/internal/config"
)

// reload reads the configuration again and applies the settings that can change while the server
// runs. If the configuration or the new certificate is invalid, nothing changes.
func (s *server) reload() {
	conf, err := s.readAgain()
	if err != nil {
		s.log.Error("reloading failed; nothing was changed", "error", err)
		return
	}

	s.level.Set(slog.Level(conf.Log.Level))
	s.app.IDP.SetLifetimes(lifetimes(conf))
	s.app.limits.Set(rates(conf))
	s.app.proxies.Set(conf.TrustedProxies.Prefixes())

	const done = "reloaded the certificate, the log level, lifetimes, limits and trusted proxies"
	level := slog.String("log_level", conf.Log.Level.String())
	if keys := conf.NeedRestart(s.app.Config); len(keys) > 0 {
		changed := strings.Join(keys, " ")
		s.log.Warn(done+"; other changed settings need a restart", level, "changed", changed)
		return
	}
	s.log.Info(done, level)
}

// readAgain reads the configuration and the certificate again. A new certificate is used at once.
func (s *server) readAgain() (config.Config, error) {
	conf, err := s.config.Reload()
	if err != nil {
		return config.Config{}, err
	}
	if s.certs != nil {
		err = s.certs.Reload()
	}
	return conf, err
}
