package clients

import (
	"testing"

	"github.com/selvage/selvage/test/harness"
)

func TestMain(m *testing.M) { harness.Main(tests{m}) }

// tests are the tests of this package. The Chromium that they share is stopped after them.
type tests struct{ *testing.M }

func (t tests) Run() int {
	defer func() { stopChromium() }() // the first test that starts Chromium sets it
	return t.M.Run()
}
