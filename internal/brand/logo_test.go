package brand_test

import (
	"bytes"
	"cmp"
	"encoding/base64"
	"encoding/binary"
	"hash/crc32"
	"image"
	"image/color"
	"image/gif"
	"image/jpeg"
	"image/png"
	"math/rand/v2"
	"strings"
	"testing"
	"time"

	"github.com/selvage/selvage/internal/brand"
	"github.com/selvage/selvage/internal/fuzzcost"
)

func encode(
	t *testing.T, wide, high int, at func(x, y int) color.Color, as func(*bytes.Buffer, image.Image) error,
) []byte {
	t.Helper()
	p := image.NewNRGBA(image.Rect(0, 0, wide, high))
	for y := range high {
		for x := range wide {
			p.Set(x, y, at(x, y))
		}
	}
	var out bytes.Buffer
	if err := as(&out, p); err != nil {
		t.Fatal(err)
	}
	return out.Bytes()
}

func asPNG(b *bytes.Buffer, p image.Image) error  { return png.Encode(b, p) }
func asJPEG(b *bytes.Buffer, p image.Image) error { return jpeg.Encode(b, p, nil) }
func asGIF(b *bytes.Buffer, p image.Image) error  { return gif.Encode(b, p, nil) }

func all(c color.Color) func(x, y int) color.Color { return func(int, int) color.Color { return c } }

func half(c color.Color) func(x, y int) color.Color {
	return func(x, _ int) color.Color {
		if x%2 == 0 {
			return color.NRGBA{}
		}
		return c
	}
}

// webp is a WebP picture of one red pixel.
const webp = "UklGRiQAAABXRUJQVlA4IBgAAAAwAQCdASoBAAEAAwA0JaQAA3AA/vuUAAA="

// TestMakeLogo shows that a picture is redrawn at a small size, and that the name of the result
// describes how to show it.
func TestMakeLogo(t *testing.T) {
	noise := rand.New(rand.NewPCG(1, 2))
	raw, err := base64.StdEncoding.DecodeString(webp)
	if err != nil {
		t.Fatal(err)
	}

	for name, want := range map[string]struct {
		raw        []byte
		wide, high int
		plate      string
	}{
		"a wide PNG": {encode(t, 1600, 200, all(color.NRGBA{R: 47, G: 75, B: 155, A: 255}), asPNG),
			200, 25, ""},
		"a JPEG":            {encode(t, 300, 300, all(color.White), asJPEG), 48, 48, ""},
		"a small WebP":      {raw, 1, 1, ""},
		"transparent black": {encode(t, 60, 40, half(color.Black), asPNG), 60, 40, "d"},
		"transparent white": {encode(t, 60, 40, half(color.White), asPNG), 60, 40, "l"},
		"fully transparent": {encode(t, 60, 40, all(color.NRGBA{}), asPNG), 60, 40, ""},
		"one line":          {encode(t, 4096, 1, all(color.Black), asPNG), 200, 1, ""},
		"a script at the end": {append(
			encode(t, 60, 40, all(color.Black), asPNG), "<script>alert(1)</script>"...), 60, 40, ""},
	} {
		logo, err := brand.MakeLogo(t.Context(), "logo", want.raw)
		if err != nil {
			t.Errorf("%s: %v", name, err)
			continue
		}
		shown, ok := brand.ParseLogo(logo.Name)
		if !ok || shown.Wide != want.wide || shown.High != want.high || shown.Plate != want.plate {
			t.Errorf("%s: %s is shown as %+v, want %dx%d%s", name, logo.Name, shown, want.wide, want.high, want.plate)
		}
		if _, err := png.Decode(bytes.NewReader(logo.PNG)); err != nil || bytes.Contains(logo.PNG, []byte("script")) {
			t.Errorf("%s: the result is not a clean PNG: %v", name, err)
		}
	}

	photo := encode(t, 800, 192, func(int, int) color.Color {
		return color.NRGBA{R: uint8(noise.Uint32()), G: uint8(noise.Uint32()), B: uint8(noise.Uint32()), A: 255}
	}, asPNG)
	if logo, err := brand.MakeLogo(t.Context(), "logo", photo); err != nil || len(logo.PNG) > 12<<10 {
		t.Errorf("a photograph becomes a logo of %d bytes, %v, want at most 12 KiB", len(logo.PNG), err)
	}
}

// TestRefused shows that pictures in other formats, and pictures that are too large, are refused
// before they are decoded.
func TestRefused(t *testing.T) {
	fine := encode(t, 600, 400, all(color.Black), asPNG)
	var encoded bytes.Buffer
	if err := png.Encode(&encoded, image.NewNRGBA64(image.Rect(0, 0, 1024, 600))); err != nil {
		t.Fatal(err)
	}

	progressive := scans(1)
	binary.BigEndian.PutUint16(progressive[progressiveHeight:], 500)
	bomb := bytes.Clone(fine)
	copy(bomb[16:], []byte{0, 0, 0x10, 0, 0, 0, 0x10, 0}) // the header claims 4096 by 4096
	binary.BigEndian.PutUint32(bomb[29:], crc32.ChecksumIEEE(bomb[12:29]))
	kinds := map[string]string{
		"16 bits a color":     "16 bits",
		"a progressive JPEG":  "progressive",
		"a WebP without loss": "lossless",
		"a bomb":              "a picture may have",
	}
	for name, raw := range map[string][]byte{
		"nothing":             nil,
		"text":                []byte("<script>alert(1)</script>"),
		"SVG":                 []byte(`<svg xmlns="http://www.w3.org/2000/svg" onload="alert(1)"/>`),
		"GIF":                 encode(t, 9, 9, all(color.Black), asGIF),
		"half a file":         fine[:len(fine)/2],
		"a bomb":              bomb,
		"a large file":        make([]byte, brand.MaxUpload+1),
		"16 bits a color":     encoded.Bytes(),
		"a progressive JPEG":  progressive,
		"a WebP without loss": []byte("RIFF\x12\x00\x00\x00WEBPVP8L\x06\x00\x00\x00\x2f\xff\xc3\x7f\x00\x00"),
		"too wide":            encode(t, 4097, 1, all(color.Black), asPNG),
	} {
		if logo, err := brand.MakeLogo(t.Context(), "logo", raw); err == nil {
			t.Errorf("%s is accepted as %s", name, logo.Name)
		} else if want := cmp.Or(kinds[name], "logo"); !strings.Contains(err.Error(), want) {
			t.Errorf("%s: %v", name, err)
		}
	}

	for _, name := range []string{"", "x", "../../etc/passwd", strings.Repeat("0", 32),
		strings.Repeat("0", 32) + "-0x5", strings.Repeat("0", 32) + "-5x5x"} {
		if _, ok := brand.ParseLogo(name); ok {
			t.Errorf("%q is accepted as the name of a logo", name)
		}
	}
}

// FuzzMake shows that any input is either refused with a problem or redrawn as a small logo, at a
// bounded cost.
func FuzzMake(f *testing.F) {
	f.Add([]byte("\x89PNG\r\n\x1a\n"))
	f.Add([]byte("RIFF\x24\x00\x00\x00WEBPVP8 "))
	f.Add([]byte("\xff\xd8\xff\xe0"))
	f.Add(scans(20))

	bound := fuzzcost.Bound{CPU: 100 * time.Millisecond, Heap: 5 << 20}
	f.Fuzz(func(t *testing.T, raw []byte) {
		bound.Check(t, len(raw), func() {
			logo, err := brand.MakeLogo(t.Context(), "logo", raw)
			if _, ok := brand.ParseLogo(logo.Name); err == nil && (!ok || len(logo.PNG) > 12<<10) {
				t.Errorf("the logo is kept as %q with %d bytes, want a valid name and at most 12 KiB",
					logo.Name, len(logo.PNG))
			}
		})
	})
}

// progressiveHeight is the offset of the picture's height in the JPEG that scans returns.
const progressiveHeight = 2 + 4 + 65 + 5

// scans returns a gray JPEG of 512 by 400 pixels with n scans. Each scan takes 18 bytes, but makes
// the decoder visit every block.
func scans(n int) []byte {
	var b bytes.Buffer
	b.WriteString("\xff\xd8\xff\xdb\x00\x43\x00" + strings.Repeat("\x01", 64)) // a quantization table
	b.WriteString("\xff\xc2\x00\x0b\x08\x01\x90\x02\x00\x01\x01\x11\x00")      // the frame: progressive
	b.WriteString("\xff\xc4\x00\x14\x10\x01" +
		strings.Repeat("\x00", 15) + "\xe0") // one code: end of band for thousands of blocks
	b.WriteString(strings.Repeat("\xff\xda\x00\x08\x01\x01\x00\x01\x3f\x00"+strings.Repeat("\x00", 8),
		n) + "\xff\xd9")
	return b.Bytes()
}

// colorScans returns a JPEG of 512 by 400 pixels with n scans and three components at full
// resolution. Each scan reads one bit for every block.
func colorScans(n int) []byte {
	const components = "\x03\x01\x11\x00\x02\x11\x00\x03\x11\x00"
	var b bytes.Buffer
	b.WriteString("\xff\xd8\xff\xdb\x00\x43\x00" + strings.Repeat("\x01", 64))
	b.WriteString("\xff\xc2\x00\x11\x08\x01\x90\x02\x00" + components)
	b.WriteString("\xff\xc4\x00\x14\x00\x01" + strings.Repeat("\x00", 16)) // one code: no difference
	scan := "\xff\xda\x00\x0c\x03\x01\x00\x02\x00\x03\x00\x00\x00\x00" + strings.Repeat("\x00", 1200)
	b.WriteString(strings.Repeat(scan, n) + "\xff\xd9")
	return b.Bytes()
}

// TestScans shows that a small file is refused if decoding it would occupy a CPU for minutes.
func TestScans(t *testing.T) {
	if _, err := brand.MakeLogo(t.Context(), "logo", scans(10)); err != nil {
		t.Errorf("a JPEG of ten scans: %v, want success", err)
	}
	logo, err := brand.MakeLogo(t.Context(), "logo", scans(500))
	if err == nil || !strings.Contains(err.Error(), "scans") {
		t.Errorf("a JPEG of 500 scans is accepted as %s: %v", logo.Name, err)
	}
}

// TestCost measures the pictures that cost most to decode: noise, 16 bits per color, and many
// scans.
func TestCost(t *testing.T) {
	noise := rand.New(rand.NewPCG(1, 2))
	gray := image.NewGray(image.Rect(0, 0, 1023, 1000))
	colors := image.NewNRGBA(image.Rect(0, 0, 1024, 1024))
	for i := range gray.Pix {
		gray.Pix[i] = uint8(noise.Uint32())
	}
	for i := range colors.Pix {
		colors.Pix[i] = uint8(noise.Uint32())
	}
	deep := image.NewNRGBA64(image.Rect(0, 0, 512, 512))
	for i := range deep.Pix {
		deep.Pix[i] = uint8(i >> 12)
	}

	small := colors.SubImage(image.Rect(0, 0, 400, 96))
	twice := image.NewNRGBA(image.Rect(0, 0, 799, 191))
	thrice := image.NewNRGBA(image.Rect(0, 0, 1199, 287))
	bound := fuzzcost.Bound{CPU: 50 * time.Millisecond, Heap: 5 << 20}
	for name, write := range map[string]func(b *bytes.Buffer) error{
		"gray noise":   func(b *bytes.Buffer) error { return png.Encode(b, gray) },
		"small noise":  func(b *bytes.Buffer) error { return png.Encode(b, small) },
		"half drawn":   func(b *bytes.Buffer) error { return png.Encode(b, twice) },
		"third drawn":  func(b *bytes.Buffer) error { return png.Encode(b, thrice) },
		"16-bit color": func(b *bytes.Buffer) error { return png.Encode(b, deep) },
		"JPEG noise":   func(b *bytes.Buffer) error { return jpeg.Encode(b, colors, &jpeg.Options{Quality: 30}) },
		"scans":        func(b *bytes.Buffer) error { _, err := b.Write(scans(20)); return err },
		"color scans":  func(b *bytes.Buffer) error { _, err := b.Write(colorScans(20)); return err },
	} {
		t.Run(name, func(t *testing.T) {
			var file bytes.Buffer
			if err := write(&file); err != nil {
				t.Fatal(err)
			}
			bound.Check(t, file.Len(), func() {
				if _, err := brand.MakeLogo(t.Context(), "logo", file.Bytes()); err != nil {
					t.Error(err)
				}
			})
		})
	}
}
