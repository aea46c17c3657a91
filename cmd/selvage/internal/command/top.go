package command

import (
	"context"
	"fmt"
	"net/url"
	"os"
	"os/signal"
	"slices"
	"strings"
	"syscall"
	"time"

	"github.com/spf13/cobra"
	"golang.org/x/term"

	"github.com/selvage/selvage/cmd/selvage/internal/cli"
	"github.com/selvage/selvage/cmd/selvage/internal/config"
	"github.com/selvage/selvage/cmd/selvage/internal/console"
	"github.com/selvage/selvage/cmd/selvage/internal/datadir"
	"github.com/selvage/selvage/cmd/selvage/internal/top"
	"github.com/selvage/selvage/internal/span"
)

func (c *commands) topCommand() *cobra.Command {
	var nodes []string
	var once bool
	interval := span.Span{Length: 2 * time.Second, Least: 100 * time.Millisecond, Most: time.Hour}

	cmd := cli.Command("top", "Watch what servers do: requests, calls, queues and errors",
		func(cmd *cobra.Command, _ []string) error {
			bases, err := c.opsListeners(cmd, nodes)
			if err != nil {
				return err
			}
			w := topWatch{commands: c, watcher: top.NewWatcher(bases), interval: interval.Length}
			if once || c.Output != "table" {
				return w.once(cmd.Context())
			}
			return w.live(cmd.Context())
		})
	cmd.Long = `Show what one or more servers do, computed from their metrics. Without --url, show the server that
runs in the data directory. The picture is redrawn at each interval until you press q or Ctrl-C.

With --once, print one picture after one interval. This works without a terminal. -o json implies --once.
The exit status is 1 if a server could not be read.`
	cmd.Flags().StringArrayVar(&nodes, "url", nil,
		"a server's ops `listener`, such as 10.0.0.11:9090; repeat the flag to watch several")
	cmd.Flags().BoolVar(&once, "once", false, "print one picture and exit")
	cmd.Flags().Var(&interval, "interval", "the `time` between two readings")
	return cmd
}

// opsListeners returns the URLs of the ops listeners to watch.
func (c *commands) opsListeners(cmd *cobra.Command, nodes []string) (bases []string, err error) {
	for _, node := range nodes {
		base := strings.TrimSuffix(node, "/")
		if !strings.Contains(base, "://") {
			base = "http://" + base
		}
		if !isListener(base) {
			return nil, cli.Usagef("--url must be the address of an ops listener, such as 127.0.0.1:9090")
		}
		bases = append(bases, base)
	}
	if bases != nil {
		return bases, nil
	}

	conf, _, err := c.loadConfig(cmd.Flags())
	if err != nil {
		return nil, err
	}
	if r, ok := datadir.ReadRunning(conf.Data); ok && r.Ops != "" {
		return []string{r.Ops}, nil
	}
	if conf.ListenOps == config.Off {
		return nil, cli.Usagef("listen_ops is off, so this server has no metrics; name another with --url")
	}
	return []string{"http://" + string(conf.ListenOps)}, nil
}

// isListener reports whether a URL consists of http or https and a host.
func isListener(base string) bool {
	u, err := url.Parse(base)
	if err != nil || u.Scheme != "http" && u.Scheme != "https" {
		return false
	}
	return u.Host != "" && base == u.Scheme+"://"+u.Host
}

// A topWatch prints pictures of servers; see [top.Picture].
type topWatch struct {
	*commands
	watcher  *top.Watcher
	interval time.Duration
}

// once prints the values of the servers once.
func (w topWatch) once(ctx context.Context) error {
	w.watcher.Look(ctx)
	if !pause(ctx, w.interval) {
		return ctx.Err()
	}
	p := w.watcher.Look(ctx)
	if err := w.print(p); err != nil {
		return err
	}

	unreachable := 0
	for _, n := range p.Nodes {
		if n.State == top.Unreachable {
			unreachable++
		}
	}
	if unreachable > 0 {
		return fmt.Errorf("%d of %s could not be read", unreachable, cli.Plural(len(p.Nodes), "server"))
	}
	return nil
}

// print prints a picture in the format of --output. With -o id, it prints the servers that are
// ready.
func (w topWatch) print(p top.Picture) error {
	switch w.Output {
	case "json":
		return w.PrintJSON(p)
	case "id":
		ready := slices.DeleteFunc(slices.Clone(p.Nodes), func(n top.Node) bool { return n.State != "ready" })
		return cli.PrintIDs(w.Env, func(n top.Node) string { return n.URL }, ready...)
	}

	for _, line := range w.draw(p, w.Width(), 0) {
		if _, err := fmt.Fprintln(w.Stdout, strings.TrimRight(line, " ")); err != nil {
			return err
		}
	}
	return nil
}

// These are control sequences for terminals (ECMA-48, and the private modes of xterm).
const (
	enterScreen = "\x1b[?1049h\x1b[?25l" // the alternate screen, without a cursor
	leaveScreen = "\x1b[?25h\x1b[?1049l"
	toTop       = "\x1b[H" // moves the cursor to the first line
	eraseLine   = "\x1b[K" // erases the rest of the line
	eraseBelow  = "\x1b[J" // erases everything after the cursor
)

// live redraws the picture at each interval until the user quits.
func (w topWatch) live(ctx context.Context) error {
	in, isFile := w.Stdin.(*os.File)
	out, isOutFile := w.Stdout.(*os.File)
	if !isFile || !isOutFile || !console.IsTerminal(in) || !console.IsTerminal(out) {
		return cli.Usagef("top needs a terminal; use --once to print one picture without a terminal")
	}
	ctx, stop := signal.NotifyContext(ctx, syscall.SIGINT, syscall.SIGTERM, syscall.SIGHUP)
	defer stop()

	before, err := term.MakeRaw(int(in.Fd()))
	if err != nil {
		return fmt.Errorf("preparing the terminal: %w", err)
	}
	defer func() { _ = term.Restore(int(in.Fd()), before) }() // nothing else can be done if this fails
	fmt.Fprint(out, enterScreen)
	defer fmt.Fprint(out, leaveScreen)
	go quitOnKey(in, stop)

	for {
		w.redraw(out, w.watcher.Look(ctx))
		if !pause(ctx, w.interval) {
			return nil
		}
	}
}

// redraw replaces the contents of the screen. Lines end with a carriage return because the terminal
// is in raw mode.
func (w topWatch) redraw(out *os.File, p top.Picture) {
	width, height, err := term.GetSize(int(out.Fd()))
	if err != nil {
		width, height = 80, 24
	}
	lines := w.draw(p, width, height)
	lines = lines[:min(len(lines), height)]
	fmt.Fprint(out, toTop+strings.Join(lines, eraseLine+"\r\n")+eraseLine+eraseBelow)
}

// quitOnKey calls stop when the user types q, Ctrl-C or Ctrl-D.
func quitOnKey(in *os.File, stop func()) {
	key := make([]byte, 1)
	for {
		n, err := in.Read(key)
		quits := n == 1 && strings.Contains("qQ\x03\x04", string(key))
		if err != nil || quits {
			stop()
			return
		}
	}
}

// pause waits for d. It returns false if ctx is done first.
func pause(ctx context.Context, d time.Duration) bool {
	select {
	case <-ctx.Done():
		return false
	case <-time.After(d):
		return true
	}
}
