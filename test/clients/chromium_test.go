package clients

import (
	"context"
	"fmt"
	"os"
	"strings"
	"testing"
	"time"

	"github.com/chromedp/chromedp"

	"github.com/selvage/selvage/test/harness"
)

// chromiumDeadline bounds a test in Chromium, and patience one step of it.
const (
	chromiumDeadline = 15 * time.Minute
	patience         = time.Minute
)

// A tab is a page of a headless Chromium with a profile of its own.
type tab struct {
	*testing.T
	ctx context.Context
}

func newTab(t *testing.T, more ...chromedp.ExecAllocatorOption) tab {
	t.Helper()
	harness.Need(t, "chromium")
	opts := append(chromedp.DefaultExecAllocatorOptions[:], chromedp.ExecPath("chromium"), chromedp.UserDataDir(t.TempDir()),
		chromedp.NoSandbox, chromedp.DisableGPU, chromedp.Flag("disable-quic", true), chromedp.Flag("disable-component-update", true))
	opts = append(opts, more...)
	ctx, cancel := context.WithTimeout(context.Background(), chromiumDeadline)
	t.Cleanup(cancel)
	ctx, cancel = chromedp.NewExecAllocator(ctx, opts...)
	t.Cleanup(cancel)
	ctx, cancel = chromedp.NewContext(ctx)
	t.Cleanup(func() {
		_ = chromedp.Cancel(ctx) // waits for Chromium to end, so that its profile can be removed
		cancel()
	})
	b := tab{t, ctx}
	t.Cleanup(b.show)
	b.do(chromedp.Navigate("about:blank"))
	return b
}

// show logs what the page says and keeps a picture of it, if the test failed.
func (b tab) show() {
	if !b.Failed() {
		return
	}
	text, err := chromedp.Run(b.ctx, chromedp.Evaluate[string]("location.href + '\\n' + document.body.innerText"))
	b.Logf("the page at the end (%v): %s", err, text)
	dir := os.Getenv("SELVAGE_TEST_PICTURES")
	if picture, err := chromedp.Run(b.ctx, chromedp.CaptureScreenshot()); dir != "" && err == nil {
		_ = os.WriteFile(dir+"/"+b.Name()+".png", picture, 0o600) // a help only
	}
}

// do takes the steps. One whose element went with its page between being found and being
// touched, or that was to open a page while another was still coming, is taken again:
// nothing has been clicked or typed by then.
func (b tab) do(steps ...chromedp.Action[chromedp.Void]) {
	b.Helper()
	late := time.Now().Add(patience)
	for _, step := range steps {
		err := chromedp.Do(b.ctx, step)
		for overtaken(err) && time.Now().Before(late) {
			err = chromedp.Do(b.ctx, step)
		}
		if err != nil {
			b.Fatalf("%v", err)
		}
	}
}

// overtaken reports whether a step failed because the tab went to another page meanwhile.
func overtaken(err error) bool {
	return err != nil && (strings.Contains(err.Error(), "Could not find node with given id") || strings.Contains(err.Error(), "net::ERR_ABORTED"))
}

// eval gives the value of an expression, or of its promise.
func eval[V any](b tab, expression string) V {
	b.Helper()
	v, err := chromedp.Run(b.ctx, chromedp.Evaluate[V](expression, chromedp.EvalAwaitPromise))
	if err != nil {
		b.Fatalf("%s: %v", expression, err)
	}
	return v
}

// leave evaluates an expression that makes the page go elsewhere: its promise
// may never come to anything.
func (b tab) leave(expression string) {
	b.Helper()
	b.do(chromedp.Evaluate[chromedp.Void]("void (" + expression + ")"))
}

// until waits until an expression is true, through whatever pages come by.
func (b tab) until(what, expression string) {
	b.Helper()
	harness.Eventually(b, patience, what, func() error {
		ok, err := chromedp.Run(b.ctx, chromedp.Evaluate[bool]("Boolean("+expression+")"))
		if err != nil || ok {
			return err
		}
		return fmt.Errorf("%s is false", expression)
	})
}
