package clients

import (
	"testing"

	"github.com/selvage/selvage/test/harness"
)

func TestMain(m *testing.M) { harness.Main(tests{m}) }

// tests holds the tests of this package. Run stops the shared Chromium after them.
type tests struct{ *testing.M }

func (t tests) Run() int {
	defer func() { stopChromium() }() // the first test that starts Chromium sets stopChromium
	return t.M.Run()
}
