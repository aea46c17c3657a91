package server

import (
	"context"
	"log/slog"

	"github.com/selvage/selvage/internal/telemetry"
)

// traces returns the tracer for requests. It returns nil if the configuration names no collector.
func traces(ctx context.Context, c Config, log *slog.Logger) (*telemetry.Tracer, error) {
	t := c.Config.Telemetry
	if t.OTLPEndpoint.Off() {
		return nil, nil
	}
	return telemetry.New(ctx, telemetry.Config{
		URL:     string(t.OTLPEndpoint),
		Headers: t.OTLPHeaders.Map(),
		Percent: int(t.Sample),
		Version: c.Version,
		Log:     log,
	})
}
