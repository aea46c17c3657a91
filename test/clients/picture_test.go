//go:build picture

package clients

import (
	"bytes"
	"image"
	"image/color"
	"image/draw"
	"image/png"
	"os"
	"strings"
	"testing"

	"github.com/chromedp/chromedp"

	"github.com/selvage/selvage/test/harness"
)

// The picture in README.md shows four pages in two rows and two columns, with a gap around each.
const (
	pictureWide, pictureHigh = 1100, 700
	pictureGap               = 24
)

// TestPicture creates the picture in README.md from the pages of a first start. `make
// screenshots` runs it with the file's name in SELVAGE_TEST_PICTURE.
func TestPicture(t *testing.T) {
	file := os.Getenv("SELVAGE_TEST_PICTURE")
	if file == "" {
		t.Fatal("SELVAGE_TEST_PICTURE is not set")
	}
	s := harness.Start(t, "--no-demo=false")
	sub, b := demoLogin(t, s), ownTab(t)
	whole := image.NewRGBA(image.Rect(0, 0, 2*pictureWide+3*pictureGap, 2*pictureHigh+3*pictureGap))

	// take puts a screenshot of the tab into the picture, with a gray border.
	take := func(column, row int, theme string) {
		b.look(pictureWide, pictureHigh, theme)
		shot, err := chromedp.Run(b.ctx, chromedp.CaptureScreenshot())
		if err != nil {
			t.Fatal(err)
		}

		page, err := png.Decode(bytes.NewReader(shot))
		if err != nil {
			t.Fatal(err)
		}

		at := image.Pt(pictureGap+column*(pictureWide+pictureGap), pictureGap+row*(pictureHigh+pictureGap))
		frame := image.Rectangle{at, at.Add(image.Pt(pictureWide, pictureHigh))}.Inset(-2)
		draw.Draw(whole, frame, image.NewUniform(color.RGBA{0x8a, 0x90, 0x9c, 0xff}), image.Point{}, draw.Src)
		draw.Draw(whole, image.Rectangle{at, at.Add(image.Pt(pictureWide, pictureHigh))}, page,
			page.Bounds().Min, draw.Src)
	}

	b.do(goTo(s.PublicURL + "/demo"))
	b.until("the button", "document.querySelector('#signin-run')?.disabled === false")
	b.leave("document.querySelector('#signin-run').click()")
	b.until("the login page", "document.querySelector('#login-submit')")
	b.do(write("#username", sub.Email))
	take(0, 0, "light")
	b.do(write("#password", sub.Password))
	b.leave("document.querySelector('#login-submit').click()")
	b.waitDone("signin")
	for _, step := range []string{"claims", "info", "addresses", "guest", "recording"} {
		b.step(step)
	}
	b.leave("document.querySelector('#step-guest').scrollIntoView()")
	take(0, 1, "dark")

	link := s.CLI(t, "", "operator", "setup-link")["url"].(string)
	b.do(goTo(link), write("#username", "ann@example.com"), write("#name", "Ann"),
		write("#password", "a loom of one's own"))
	b.leave("document.querySelector('#setup-submit').click()")
	b.until("the dashboard", "location.pathname.startsWith('/dashboard/projects/')")
	home := strings.TrimSuffix(eval[string](b, "location.href"), "/")
	take(1, 0, "dark")
	b.do(goTo(home+"/recordings"), chromedp.Click(chromedp.CSS(".table td a")))
	b.until("a recording", "/recordings\\/./.test(location.pathname)")
	take(1, 1, "light")

	var out bytes.Buffer
	if err := (&png.Encoder{CompressionLevel: png.BestCompression}).Encode(&out, whole); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(file, out.Bytes(), 0o644); err != nil {
		t.Fatal(err)
	}
}
