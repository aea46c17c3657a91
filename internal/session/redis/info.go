package redis

import (
	"context"
	"fmt"
	"strconv"
	"strings"
	"time"
)

// Info tells how Redis is set up.
type Info struct {
	Mode    Mode
	Servers []Server // the masters
}

// A Server is one master.
type Server struct {
	Address  string
	Version  string
	Clock    time.Time // its own
	Replicas int
	Used     int64  // bytes
	Max      int64  // bytes; 0 is no limit
	Policy   string // what it does when full: "noeviction", "allkeys-lru" …
	AOF      bool   // it writes down each change
	Save     string // when it writes down everything: "3600 1 300 100"; "" is never, "?" is that it will not tell
}

// Info asks each master, within two seconds.
func (s *Store) Info(ctx context.Context) (Info, error) {
	ctx, cancel := context.WithTimeout(ctx, 2*time.Second)
	defer cancel()
	masters, err := s.masters(ctx)
	if err != nil {
		return Info{}, fmt.Errorf("asking Redis: %w", s.explain(err))
	}
	info := Info{Mode: s.at.mode}
	for _, m := range masters {
		server, err := m.info(ctx)
		if err != nil {
			return Info{}, fmt.Errorf("asking Redis at %s: %w", m.address, s.explain(err))
		}
		info.Servers = append(info.Servers, server)
	}
	return info, nil
}

func (m master) info(ctx context.Context) (Server, error) {
	text, err := m.client.Info(ctx).Result()
	if err != nil {
		return Server{}, err
	}
	clock, err := m.client.Time(ctx).Result()
	if err != nil {
		return Server{}, err
	}
	fields := make(map[string]string)
	for line := range strings.Lines(text) {
		name, value, _ := strings.Cut(strings.TrimSpace(line), ":")
		fields[name] = value
	}
	number := func(name string) int64 { n, _ := strconv.ParseInt(fields[name], 10, 64); return n }
	server := Server{
		Address: m.address, Version: fields["redis_version"], Clock: clock, Replicas: int(number("connected_slaves")),
		Used: number("used_memory"), Max: number("maxmemory"), Policy: fields["maxmemory_policy"],
		AOF: fields["aof_enabled"] == "1", Save: "?",
	}
	// Reading its configuration is more than an account needs to be allowed.
	if config, err := m.client.ConfigGet(ctx, "save").Result(); err == nil {
		server.Save = config["save"]
	}
	return server, nil
}
