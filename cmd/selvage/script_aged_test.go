package main

import (
	"context"
	"log/slog"
	"strconv"
	"time"

	"github.com/rogpeppe/go-internal/testscript"

	"github.com/selvage/selvage/cmd/selvage/internal/config"
	"github.com/selvage/selvage/cmd/selvage/internal/datadir"
	"github.com/selvage/selvage/cmd/selvage/internal/server"
	"github.com/selvage/selvage/internal/audit"
	"github.com/selvage/selvage/store"
)

// cmdAged creates selvage-data as if selvage had been installed some days ago. The audit trail has
// a number of sign-ins on that day. Scripts use it because they cannot set the machine's clock
// back.
func cmdAged(ts *testscript.TestScript, _ bool, args []string) {
	if len(args) != 2 {
		ts.Fatalf("usage: aged DAYS SIGN-INS")
	}

	days, err := strconv.Atoi(args[0])
	ts.Check(err)
	signIns, err := strconv.Atoi(args[1])
	ts.Check(err)
	ctx := context.Background()
	now := time.Now().AddDate(0, 0, -days)
	c := config.Config{
		Data:     ts.MkAbs("selvage-data"),
		Database: config.DatabaseURL(ts.Getenv("SELVAGE_DATABASE")),
	}
	ts.Check(datadir.Make(c.Data))

	rows, err := store.Open(ctx, store.Config{
		URL: string(c.Database),
		Dir: c.Data,
		Now: func() time.Time { return now },
	})
	ts.Check(err)
	_, err = server.OpenRing(ctx, c, rows, slog.New(slog.DiscardHandler))
	ts.Check(err)
	for range signIns {
		now = now.Add(time.Second)
		ts.Check(rows.Record(ctx, audit.Of("login", "", "subscriber", "somebody")))
	}
	ts.Check(rows.Close())
}
