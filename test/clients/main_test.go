package clients

import (
	"testing"

	"github.com/selvage/selvage/test/harness"
)

func TestMain(m *testing.M) { harness.Main(suite{m}) }

// suite removes what the tests have built in the end.
type suite struct{ *testing.M }

func (s suite) Run() int {
	defer removePebble()
	return s.M.Run()
}
