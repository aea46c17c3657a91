package redis

import (
	"context"
	"fmt"
	"strconv"
	"strings"
	"time"
)

// Info describes a Redis installation.
type Info struct {
	Mode    Mode
	Servers []Server // the masters
}

// A Server describes one master.
type Server struct {
	Address  string
	Version  string
	Clock    time.Time // the time on the server
	Replicas int
	Used     int64  // memory in use, in bytes
	Max      int64  // maximum of Used; 0 means no limit
	Policy   string // how the server evicts entries when it is full, such as "noeviction" or "allkeys-lru"
	AOF      bool   // whether each change is logged to disk
	Save     string // when the server saves snapshots, such as "3600 1 300 100"; "" means never, "?" means unknown
}

// Info describes each master. It takes at most two seconds.
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
		Address:  m.address,
		Version:  fields["redis_version"],
		Clock:    clock,
		Replicas: int(number("connected_slaves")),
		Used:     number("used_memory"),
		Max:      number("maxmemory"),
		Policy:   fields["maxmemory_policy"],
		AOF:      fields["aof_enabled"] == "1",
		Save:     "?",
	}

	// The account may lack the permission to read the configuration, which nothing else needs.
	if config, err := m.client.ConfigGet(ctx, "save").Result(); err == nil {
		server.Save = config["save"]
	}
	return server, nil
}
