package clients

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/chromedp/cdproto/cdp"
	"github.com/chromedp/cdproto/input"
	"github.com/chromedp/cdproto/page"
	"github.com/chromedp/chromedp"

	"github.com/selvage/selvage/test/harness"
)

// chromiumDeadline limits a whole test in Chromium, and patience limits each step.
const (
	chromiumDeadline = 15 * time.Minute
	patience         = time.Minute
)

// The builds of Chromium. The headless build has no user interface and takes half the CPU time.
// Tests use the complete build if they depend on the user interface, such as the blocking of popup
// windows.
const (
	headless = "chromium-headless-shell"
	complete = "chromium"
)

// A tab is a page of a headless Chromium with its own profile.
type tab struct {
	*testing.T
	ctx context.Context
}

// unneeded lists features of Chromium that tests disable, because they do not need them:
//   - the buttons of its window, which are pages in a process that takes part in every navigation,
//     and a second process of this kind that is started in advance;
//   - a spare process for the next page;
//   - the cache of pages to which the back button returns.
//
// The first two names are chromedp's own defaults.
const unneeded = "Translate,BlinkGenPropertyTrees,InitialWebUI,WebUIReloadButton,PreloadTopChromeWebUI," +
	"SpareRendererForSitePerProcess,BackForwardCache"

// chromiumDir creates a directory for the profile and the sockets of a Chromium, which would
// otherwise leave its sockets elsewhere. The path is short, because the paths of sockets must be.
func chromiumDir(t *testing.T) string {
	t.Helper()
	dir, err := os.MkdirTemp("", "tab-")
	if err != nil {
		t.Fatal(err)
	}

	t.Cleanup(func() { // one of Chromium's processes may still be writing
		harness.Eventually(t, patience, "the directory of Chromium to be removed", func() error {
			return os.RemoveAll(dir)
		})
	})
	return dir
}

// newTab returns a tab with its own profile in the Chromium that the tests share. The tab is closed
// at the end of the test. A test that needs flags or the keyboard focus calls [ownTab].
func newTab(t *testing.T) tab {
	t.Helper()
	harness.Need(t, headless)
	shared, err := sharedChromium()
	if err != nil {
		t.Fatalf("starting Chromium: %v", err)
	}

	ctx, cancel := context.WithTimeout(shared, chromiumDeadline)
	t.Cleanup(cancel)
	ctx, cancel = chromedp.NewContext(ctx, chromedp.WithNewBrowserContext())
	t.Cleanup(func() {
		_ = chromedp.Cancel(ctx) // waits for the tab to be closed
		cancel()
	})
	return openBlank(t, ctx)
}

// sharedChromium starts the Chromium that the tests share. [stopChromium] stops it.
var sharedChromium = sync.OnceValues(func() (context.Context, error) {
	dir, err := os.MkdirTemp("", "tab-")
	if err != nil {
		return nil, err
	}
	ctx, cancel := chromedp.NewExecAllocator(context.Background(), chromiumOptions(headless, dir)...)
	ctx, _ = chromedp.NewContext(ctx)
	stopChromium = func() {
		_ = chromedp.Cancel(ctx) // waits for Chromium to end
		cancel()
		_ = os.RemoveAll(dir)
	}
	return ctx, chromedp.Do(ctx, goTo("about:blank"))
})

// stopChromium stops the Chromium that the tests share, if it was started.
var stopChromium = func() {}

// chromiumOptions returns the options for a build of Chromium. dir is the directory for all its
// files.
func chromiumOptions(build, dir string, more ...chromedp.ExecAllocatorOption) []chromedp.ExecAllocatorOption {
	opts := append(chromedp.DefaultExecAllocatorOptions[:], chromedp.ExecPath(build), chromedp.UserDataDir(dir),
		// The size of a typical desktop window.
		chromedp.NoSandbox, chromedp.DisableGPU, chromedp.WindowSize(1280, 900),
		chromedp.Flag("disable-quic", true),
		chromedp.Flag("allow-pre-commit-input", true), // Chromium drops clicks before the first frame otherwise
		chromedp.Flag("disable-component-update", true), chromedp.Flag("disable-features", unneeded))
	return append(append(opts, more...), chromedp.Env("TMPDIR="+dir))
}

// ownTab starts a headless Chromium with its own profile and returns its tab. Chromium is
// stopped at the end of the test.
func ownTab(t *testing.T, more ...chromedp.ExecAllocatorOption) tab {
	t.Helper()
	return tabOf(t, headless, more...)
}

// completeTab is like ownTab, but with the complete build of Chromium.
func completeTab(t *testing.T, more ...chromedp.ExecAllocatorOption) tab {
	t.Helper()
	return tabOf(t, complete, more...)
}

// tabOf starts a build of Chromium and returns its tab.
func tabOf(t *testing.T, build string, more ...chromedp.ExecAllocatorOption) tab {
	t.Helper()
	harness.Need(t, build)
	opts := chromiumOptions(build, chromiumDir(t), more...)

	ctx, cancel := context.WithTimeout(context.Background(), chromiumDeadline)
	t.Cleanup(cancel)
	ctx, cancel = chromedp.NewExecAllocator(ctx, opts...)
	t.Cleanup(cancel)
	ctx, cancel = chromedp.NewContext(ctx)
	t.Cleanup(func() {
		_ = chromedp.Cancel(ctx) // waits for Chromium to end, so that its profile can be removed
		cancel()
	})
	return openBlank(t, ctx)
}

// openBlank returns the tab of a context, with an empty page.
func openBlank(t *testing.T, ctx context.Context) tab {
	t.Helper()
	b := tab{t, ctx}
	t.Cleanup(b.show)
	b.watch()
	b.do(goTo("about:blank"))
	return b
}

// beside returns another tab of the same Chromium. The tab is new unless an option chooses an
// existing one.
func (b tab) beside(opts ...chromedp.ContextOption) tab {
	b.Helper()
	ctx, cancel := chromedp.NewContext(b.ctx, opts...)
	b.Cleanup(cancel)
	other := tab{b.T, ctx}
	b.Cleanup(other.show)
	other.watch()
	return other
}

// leaving is a script that runs first in every page. It records that the page is about to be left,
// because a form was sent or a link was followed. From then on, tests must not read or use the
// page.
const leaving = `
addEventListener("submit", (e) => {
	const target = e.submitter?.formTarget || e.target.target || "_self"
	if (!e.defaultPrevented && target === "_self" && e.target.method !== "dialog") window.leaving = true
})
window.navigation?.addEventListener("navigate", (e) => {
	if (!e.defaultPrevented && !e.destination.sameDocument && e.downloadRequest === null) window.leaving = true
})`

// watch makes all later pages of the tab run [leaving].
func (b tab) watch() {
	b.Helper()
	if _, err := chromedp.Call(b.ctx, page.AddScriptToEvaluateOnNewDocument,
		page.AddScriptToEvaluateOnNewDocumentParams{Source: leaving}); err != nil {
		b.Fatalf("watching the pages of a tab: %v", err)
	}
}

// show logs the page's text if the test failed. If SELVAGE_TEST_PICTURES names a directory, show
// also saves a screenshot there.
func (b tab) show() {
	if !b.Failed() {
		return
	}
	text, err := chromedp.Run(b.ctx, chromedp.Evaluate[string]("location.href + '\\n' + document.body.innerText"))
	b.Logf("the page at the end (%v): %s", err, text)
	dir := os.Getenv("SELVAGE_TEST_PICTURES")
	if picture, err := chromedp.Run(b.ctx, chromedp.CaptureScreenshot()); dir != "" && err == nil {
		name := fmt.Sprintf("%s/%s-%s.png", dir, path.Base(b.Name()), chromedp.FromContext(b.ctx).Target.TargetID)
		_ = os.WriteFile(name, picture, 0o600) // best effort
	}
}

// do runs each step on a page that is complete and not about to be left. If another page arrives
// during a step, do repeats the step. This is safe, because a step that fails in this way has not
// clicked or typed anything yet.
func (b tab) do(steps ...chromedp.Action[chromedp.Void]) {
	b.Helper()
	for _, step := range steps {
		b.retry(func() error { return chromedp.Do(b.ctx, step) })
	}
}

// errStayed reports that a navigation did not leave the page.
var errStayed = errors.New("the page did not change")

// goTo opens an address. If another navigation intervenes, Chromium reports no error and the old
// page stays. goTo then returns errStayed, so that the step is repeated.
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
		case res.LoaderID == "": // the address is another part of the same page
			return nil
		}

		stayed, err := chromedp.Evaluate[bool]("Boolean(window.here)")(ctx, t)
		if err == nil && stayed {
			return errStayed
		}
		return nil // the caller waits for the new page
	})
}

// retry calls do on a complete page, and again if the page was replaced in the meantime.
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

// overtaken reports whether a step failed because the tab moved to another page in the meantime, or
// because an element moved or disappeared.
func overtaken(err error) bool {
	return errors.Is(err, errStayed) || slices.ContainsFunc([]string{
		"Could not find node with given id", "No node with given id", "Node is detached",
		"does not have a layout object", "Could not compute content quads",
		"invalid dimensions", "Element is not focusable", "net::ERR_ABORTED",
		"Execution context was destroyed", "Cannot find context", "Inspected target navigated or closed",
		"Cannot find default execution context",
	}, func(fault string) bool { return strings.Contains(err.Error(), fault) })
}

// eval returns the value of an expression. If the value is a promise, eval returns what it resolves
// to.
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

// write inserts the whole text into a field in one step. Typing would redraw the page three times
// per key.
func write(field, text string) chromedp.Action[chromedp.Void] {
	return chromedp.Steps(chromedp.Focus(chromedp.CSS(field), chromedp.NodeVisible),
		chromedp.Func(func(ctx context.Context, t *chromedp.Target) error {
			_, err := cdp.Call(ctx, t, input.InsertText, input.InsertTextParams{Text: text})
			return err
		}))
}

// leave evaluates an expression that makes the tab leave the page, and ignores its value.
func (b tab) leave(expression string) {
	b.Helper()
	b.do(chromedp.Evaluate[chromedp.Void]("void (" + expression + ")"))
}

// until waits until an expression is true, across navigations. It evaluates the expression only on
// pages that are complete and not about to be left. On a complete page, the scripts have run and
// the fonts no longer move anything.
func (b tab) until(what, expression string) {
	b.Helper()
	harness.Eventually(b, patience, what, func() error {
		ok, err := chromedp.Run(b.ctx, chromedp.Evaluate[bool](
			"document.readyState === 'complete' && document.fonts.status === 'loaded' && !window.leaving && "+
				"Boolean("+expression+")"))
		if err != nil || ok {
			return err
		}
		return fmt.Errorf("%s is false, or its page is about to be left", expression)
	})
}
