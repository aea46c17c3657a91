package clients

import (
	"context"
	"errors"
	"fmt"
	"os"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/chromedp/cdproto/cdp"
	"github.com/chromedp/cdproto/input"
	"github.com/chromedp/cdproto/page"
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

// lean leaves out of Chromium what nobody looks at: it draws the buttons of its own window, which has no screen, as
// pages, in a process that takes part in every navigation; it starts another such process, and one for a page to come,
// ahead of time; and it keeps pages that were left. The first two names are chromedp's own.
const lean = "Translate,BlinkGenPropertyTrees,InitialWebUI,WebUIReloadButton,PreloadTopChromeWebUI,SpareRendererForSitePerProcess,BackForwardCache"

// chromiumDir makes a directory for all that a Chromium keeps: its profile, and the sockets that it would leave behind
// elsewhere, whose names have to be short.
func chromiumDir(t *testing.T) string {
	t.Helper()
	dir, err := os.MkdirTemp("", "tab-")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { // a process of it may still write
		harness.Eventually(t, patience, "the directory of Chromium to be removed", func() error {
			return os.RemoveAll(dir)
		})
	})
	return dir
}

func newTab(t *testing.T, more ...chromedp.ExecAllocatorOption) tab {
	t.Helper()
	harness.Need(t, "chromium")
	dir := chromiumDir(t)
	opts := append(chromedp.DefaultExecAllocatorOptions[:], chromedp.ExecPath("chromium"), chromedp.UserDataDir(dir),
		chromedp.NoSandbox, chromedp.DisableGPU, chromedp.Flag("disable-quic", true),
		chromedp.Flag("disable-component-update", true), chromedp.Flag("disable-features", lean))
	opts = append(append(opts, more...), chromedp.Env("TMPDIR="+dir))
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
	b.watch()
	b.do(goTo("about:blank"))
	return b
}

// beside returns another tab of the same Chromium: a new one, or by an option one there is.
func (b tab) beside(opts ...chromedp.ContextOption) tab {
	b.Helper()
	ctx, cancel := chromedp.NewContext(b.ctx, opts...)
	b.Cleanup(cancel)
	other := tab{b.T, ctx}
	other.watch()
	return other
}

// leaving is run first in every page, and remembers whether it is about to go: a form of it was
// sent, or it leads elsewhere, and what comes next is not there yet. Nobody may look at it or
// touch it from then on.
const leaving = `
addEventListener("submit", (e) => {
	const target = e.submitter?.formTarget || e.target.target || "_self"
	if (!e.defaultPrevented && target === "_self" && e.target.method !== "dialog") window.leaving = true
})
window.navigation?.addEventListener("navigate", (e) => {
	if (!e.defaultPrevented && !e.destination.sameDocument && e.downloadRequest === null) window.leaving = true
})`

// watch has [leaving] run in the pages that come.
func (b tab) watch() {
	b.Helper()
	if _, err := chromedp.Call(b.ctx, page.AddScriptToEvaluateOnNewDocument, page.AddScriptToEvaluateOnNewDocumentParams{Source: leaving}); err != nil {
		b.Fatalf("watching the pages of a tab: %v", err)
	}
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

// do takes the steps, each on a page that is there as a whole and about to stay. One that a
// coming page overtakes is taken again: nothing has been clicked or typed by then.
func (b tab) do(steps ...chromedp.Action[chromedp.Void]) {
	b.Helper()
	for _, step := range steps {
		b.retry(func() error { return chromedp.Do(b.ctx, step) })
	}
}

// errStayed says that a page is still there which was to be left.
var errStayed = errors.New("the page was not left")

// goTo leads to an address. Chromium tells of no error if another navigation comes between: then the page that
// was there has stayed, and it is done again.
func goTo(address string) chromedp.Action[chromedp.Void] {
	return chromedp.Func(func(ctx context.Context, t *chromedp.Target) error {
		if _, err := chromedp.Evaluate[chromedp.Void]("void (window.here = true)")(ctx, t); err != nil {
			return err
		}
		res, err := cdp.Call(ctx, t, page.Navigate, page.NavigateParams{URL: address})
		switch {
		case err != nil:
			return err
		case res.ErrorText != "":
			return fmt.Errorf("going to %s: %s", address, res.ErrorText)
		case res.LoaderID == "": // another part of the page
			return nil
		}
		stayed, err := chromedp.Evaluate[bool]("Boolean(window.here)")(ctx, t)
		if err == nil && stayed {
			return errStayed
		}
		return nil // what comes is waited for
	})
}

// retry does something on a page that is there as a whole, once more where that page went to
// another meanwhile by itself.
func (b tab) retry(do func() error) {
	b.Helper()
	late := time.Now().Add(patience)
	for {
		b.until("the page", "true")
		err := do()
		switch {
		case err == nil:
			return
		case !overtaken(err) || time.Now().After(late):
			b.Fatalf("%v", err)
		}
	}
}

// overtaken reports whether a step failed because the tab went to another page meanwhile, or
// an element to another place or away.
func overtaken(err error) bool {
	return errors.Is(err, errStayed) || slices.ContainsFunc([]string{
		"Could not find node with given id", "No node with given id", "Node is detached",
		"does not have a layout object", "Could not compute content quads",
		"invalid dimensions", "Element is not focusable", "net::ERR_ABORTED",
		"Execution context was destroyed", "Cannot find context", "Inspected target navigated or closed",
		"Cannot find default execution context",
	}, func(fault string) bool { return strings.Contains(err.Error(), fault) })
}

// eval returns the value of an expression, or of its promise.
func eval[V any](b tab, expression string) (v V) {
	b.Helper()
	b.retry(func() (err error) {
		if v, err = chromedp.Run(b.ctx, chromedp.Evaluate[V](expression, chromedp.EvalAwaitPromise)); err != nil {
			err = fmt.Errorf("%s: %w", expression, err)
		}
		return err
	})
	return v
}

// write puts text into a field, all of it at once: for each key that is pressed the page is drawn anew, three times.
func write(field, text string) chromedp.Action[chromedp.Void] {
	return chromedp.Steps(chromedp.Focus(chromedp.CSS(field), chromedp.NodeVisible),
		chromedp.Func(func(ctx context.Context, t *chromedp.Target) error {
			_, err := cdp.Call(ctx, t, input.InsertText, input.InsertTextParams{Text: text})
			return err
		}))
}

// leave evaluates an expression that makes the page go elsewhere: its promise
// may never come to anything.
func (b tab) leave(expression string) {
	b.Helper()
	b.do(chromedp.Evaluate[chromedp.Void]("void (" + expression + ")"))
}

// until waits until an expression is true, through whatever pages come by: of a page that is
// there as a whole, its scripts have run, and not of one that is about to go.
func (b tab) until(what, expression string) {
	b.Helper()
	harness.Eventually(b, patience, what, func() error {
		ok, err := chromedp.Run(b.ctx, chromedp.Evaluate[bool](
			"document.readyState === 'complete' && !window.leaving && Boolean("+expression+")"))
		if err != nil || ok {
			return err
		}
		return fmt.Errorf("%s is false, or its page is about to go", expression)
	})
}
