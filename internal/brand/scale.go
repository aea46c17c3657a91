package brand

import (
	"image"
	"image/color"

	"golang.org/x/image/draw"
)

// fit scales a picture down to the maximum size of a logo, if it is larger.
func fit(picture image.Image) *image.NRGBA {
	size := picture.Bounds().Size()
	scale := min(1, float64(maxWidth)/float64(size.X), float64(maxHeight)/float64(size.Y))
	if n := int(1 / scale); n > 1 {
		picture = shrink(picture, n)
		scale *= float64(n)
	}
	return redraw(picture, scale)
}

// shrink returns the picture at 1/n of its width and height. Each pixel is the mean of n by n
// pixels. For a large picture this costs much less than redraw.
func shrink(from image.Image, n int) *image.RGBA {
	b := from.Bounds()
	to := image.NewRGBA(image.Rect(0, 0, (b.Dx()+n-1)/n, (b.Dy()+n-1)/n))
	strip := image.NewRGBA(image.Rect(0, 0, b.Dx(), n)) // the rows of from that make one row of to
	for y := range to.Rect.Dy() {
		rows := min(n, b.Dy()-y*n)
		draw.Draw(strip, image.Rect(0, 0, b.Dx(), rows), from, b.Min.Add(image.Pt(0, y*n)), draw.Src)
		for x := range to.Rect.Dx() {
			columns := min(n, b.Dx()-x*n)
			block := image.Rect(x*n, 0, x*n+columns, rows)
			to.SetRGBA(x, y, mean(strip, block))
		}
	}
	return to
}

// mean returns the mean color of a block of a picture.
func mean(picture *image.RGBA, block image.Rectangle) color.RGBA {
	var r, g, b, a int
	for y := block.Min.Y; y < block.Max.Y; y++ {
		line := picture.Pix[picture.PixOffset(block.Min.X, y):][:4*block.Dx()]
		for i := 0; i < len(line); i += 4 {
			r += int(line[i])
			g += int(line[i+1])
			b += int(line[i+2])
			a += int(line[i+3])
		}
	}
	pixels := block.Dx() * block.Dy()
	return color.RGBA{R: uint8(r / pixels), G: uint8(g / pixels), B: uint8(b / pixels), A: uint8(a / pixels)}
}

// redraw returns the picture scaled down.
func redraw(from image.Image, scale float64) *image.NRGBA {
	size := from.Bounds().Size()
	width := max(1, int(float64(size.X)*scale+0.5))
	height := max(1, int(float64(size.Y)*scale+0.5))
	to := image.NewNRGBA(image.Rect(0, 0, width, height))
	draw.CatmullRom.Scale(to, to.Bounds(), from, from.Bounds(), draw.Src, nil)
	return to
}
