//! Images in folders by class, or in a `.tar.gz` of such folders.
//!
//! The classes are the names of the folders in alphabetical order; within a class, images come in the
//! order of their names. All images must have one size; they become `image: u8[N,C,H,W]` with one channel
//! where the first image is grey and three otherwise, and `label: i32[N]`.

use super::dataset::Dataset;
use crate::reading::{io_error, open, read_exactly, unpacked};
use backfit_ir::{DType, Error, Literal, Problem, Result, Type};
use image::{ColorType, DynamicImage, ImageDecoder, ImageReader, Limits};
use std::collections::BTreeSet;
use std::fs;
use std::io::{Cursor, Read};
use std::path::{Component, Path, PathBuf};

const MAX_SIDE: u32 = 1 << 14;
const MAX_FILE: u64 = 1 << 26;
const MAX_DECODED: u64 = 1 << 30;

/// An image as it lies in a folder or archive.
struct Packed {
    class: String,
    /// How errors name it.
    name: PathBuf,
    bytes: Vec<u8>,
}

/// Reads the images of `folder/class/*.png|jpg|jpeg`.
///
/// # Errors
/// The folder cannot be read or has no images; an image cannot be decoded, has another size or other
/// colours than the first, or is not opaque.
pub fn read_folder(folder: &Path) -> Result<Dataset> {
    let mut classes: Vec<PathBuf> = list(folder)?.into_iter().filter(|p| p.is_dir()).collect();
    classes.sort();
    let mut files = Vec::new();
    for path in classes {
        let class = file_name(&path);
        let mut images: Vec<PathBuf> = list(&path)?.into_iter().filter(|p| is_image(p)).collect();
        images.sort();
        files.extend(images.into_iter().map(|image| (class.clone(), image)));
    }
    let packed = files.into_iter().map(|(class, name)| {
        let bytes = fs::read(&name).map_err(|e| io_error(&name, "cannot read the image", &e))?;
        Ok(Packed { class, name, bytes })
    });
    assemble(packed, folder)
}

/// Reads one image: `u8[1,C,H,W]`.
///
/// # Errors
/// The file cannot be read or decoded, or is not opaque.
pub fn read_image(file: &Path) -> Result<Literal> {
    let bytes = fs::read(file).map_err(|e| io_error(file, "cannot read the image", &e))?;
    let mut pixels = Vec::new();
    let image = Packed { class: String::new(), name: file.to_owned(), bytes };
    let Format { width, height, channels } = decode(&image, None, &mut pixels)?;
    let ty = Type::new(DType::U8, [1, channels, height as usize, width as usize]);
    Ok(Literal::from_bytes(ty, pixels).expect("the decoder filled every pixel"))
}

/// Reads the images of a `.tar.gz` (or `.tar`) with entries `…/class/*.png|jpg|jpeg`.
///
/// # Errors
/// As for [`read_folder`]; the archive is damaged, has entries that lie outside of it (absolute or with
/// `..`) or are links, or has classes in more than one folder.
pub fn read_archive(file: &Path) -> Result<Dataset> {
    decode_archive(open(file)?, file)
}

/// Reads an archive from memory or a stream; `file` is named in errors.
///
/// # Errors
/// As for [`read_archive`].
pub fn decode_archive(content: impl std::io::BufRead, file: &Path) -> Result<Dataset> {
    let damaged = |e: &std::io::Error| io_error(file, "cannot read the archive", e);
    let mut archive = tar::Archive::new(unpacked(content).map_err(|e| damaged(&e))?);
    let mut packed = Vec::new();
    let mut parents = BTreeSet::new();
    for entry in archive.entries().map_err(|e| damaged(&e))? {
        let mut entry = entry.map_err(|e| damaged(&e))?;
        let path = entry.path().map_err(|e| damaged(&e))?.into_owned();
        let kind = entry.header().entry_type();
        if !path.components().all(|c| matches!(c, Component::Normal(_) | Component::CurDir)) {
            return Err(outside(&path, "its path leads outside of the archive", file));
        }
        if kind.is_symlink() || kind.is_hard_link() {
            return Err(outside(&path, "it is a link", file));
        }
        if !kind.is_file() || !is_image(&path) {
            continue;
        }
        let name = file.join(&path);
        if entry.size() > MAX_FILE {
            return Err(Problem::new(format!("an image of {} bytes", entry.size())).in_file(name).into());
        }
        let Some(class) = path.parent().filter(|p| p.file_name().is_some()) else {
            let problem = Problem::new("the image lies in no class folder").in_file(name);
            return Err(problem.help("entries are named class/image.png or split/class/image.png").into());
        };
        parents.insert(class.parent().map(Path::to_path_buf));
        let size = entry.size() as usize;
        let bytes = read_exactly(&mut entry as &mut dyn Read, size, "the image", &name)?;
        packed.push(Packed { class: file_name(class), name, bytes });
    }
    if let [first, second, ..] = &parents.iter().flatten().collect::<Vec<_>>()[..] {
        let what = format!("classes lie in '{}' and in '{}'", first.display(), second.display());
        return Err(Problem::new(what).in_file(file).help("make one archive for each part").into());
    }
    packed.sort_by(|a, b| (&a.class, &a.name).cmp(&(&b.class, &b.name)));
    assemble(packed.into_iter().map(Ok), file)
}

fn outside(entry: &Path, why: &str, file: &Path) -> Error {
    let problem = Problem::new(format!("the entry '{}' is refused", entry.display())).in_file(file);
    problem.because(why).help("make the archive again from plain files").into()
}

fn list(folder: &Path) -> Result<Vec<PathBuf>> {
    let failed = |e: &std::io::Error| io_error(folder, "cannot list the folder", e);
    let entries = fs::read_dir(folder).map_err(|e| failed(&e))?;
    let paths: std::io::Result<Vec<PathBuf>> = entries.map(|entry| Ok(entry?.path())).collect();
    let mut paths = paths.map_err(|e| failed(&e))?;
    paths.retain(|path| !file_name(path).starts_with('.'));
    Ok(paths)
}

fn file_name(path: &Path) -> String {
    path.file_name().unwrap_or_default().to_string_lossy().into_owned()
}

fn is_image(path: &Path) -> bool {
    let ending = path.extension().unwrap_or_default().to_string_lossy().to_lowercase();
    matches!(ending.as_str(), "png" | "jpg" | "jpeg")
}

/// Size and channels that all images share.
#[derive(Clone, Copy, PartialEq)]
struct Format {
    width: u32,
    height: u32,
    channels: usize,
}

/// Decodes images that come sorted by class.
fn assemble(images: impl Iterator<Item = Result<Packed>>, origin: &Path) -> Result<Dataset> {
    let mut classes: Vec<String> = Vec::new();
    let (mut pixels, mut labels) = (Vec::new(), Vec::new());
    let mut first: Option<(Format, PathBuf)> = None;
    for image in images {
        let image = image?;
        let format = decode(&image, first.as_ref(), &mut pixels)?;
        if classes.last() != Some(&image.class) {
            classes.push(image.class);
        }
        labels.push(classes.len() as i32 - 1);
        first.get_or_insert((format, image.name));
    }
    let Some((Format { width, height, channels }, _)) = first else {
        let problem = Problem::new("there are no images").in_file(origin);
        return Err(problem.help("images are expected as class/image.png, or .jpg").into());
    };
    let ty = Type::new(DType::U8, [labels.len(), channels, height as usize, width as usize]);
    let image = Literal::from_bytes(ty, pixels).expect("every image has the same size");
    let label = Literal::from_i32([labels.len()], &labels);
    Ok(Dataset::new([("image", image), ("label", label)])?.from_file(origin).with_class_names(classes))
}

/// Decodes one image and appends its channels, one after the other, to `pixels`.
fn decode(image: &Packed, first: Option<&(Format, PathBuf)>, pixels: &mut Vec<u8>) -> Result<Format> {
    let refuse = |what: String| Problem::new(what).in_file(&image.name);
    let undecodable = |e: &dyn std::fmt::Display| refuse("cannot decode the image".into()).because(e.to_string());
    let mut reader = ImageReader::new(Cursor::new(&image.bytes));
    let mut limits = Limits::default();
    limits.max_image_width = Some(MAX_SIDE);
    limits.max_image_height = Some(MAX_SIDE);
    limits.max_alloc = Some(MAX_DECODED);
    reader.limits(limits);
    let reader = reader.with_guessed_format().map_err(|e| undecodable(&e))?;
    let decoder = reader.into_decoder().map_err(|e| undecodable(&e))?;
    let (width, height) = decoder.dimensions();
    let channels = match decoder.color_type() {
        ColorType::L8 | ColorType::La8 => 1,
        ColorType::Rgb8 | ColorType::Rgba8 => 3,
        other => {
            let problem = refuse(format!("the image has the colour type {other:?}"));
            return Err(problem.help("save it with 8 bits a channel").into());
        }
    };
    let format = Format { width, height, channels };
    if let Some((expected, name)) = first.filter(|(expected, _)| *expected != format) {
        let told = |f: &Format| {
            let colours = if f.channels == 1 { "grey" } else { "RGB" };
            format!("{}×{} {colours}", f.width, f.height)
        };
        let problem = refuse(format!("the image is {}", told(&format)));
        let problem = problem.because(format!("the first, {}, is {}", name.display(), told(expected)));
        return Err(problem.help("bring all images to one size and colour type").into());
    }
    let decoded = DynamicImage::from_decoder(decoder).map_err(|e| undecodable(&e))?;
    let opaque = match &decoded {
        DynamicImage::ImageLumaA8(image) => image.pixels().all(|p| p.0[1] == 255),
        DynamicImage::ImageRgba8(image) => image.pixels().all(|p| p.0[3] == 255),
        _ => true,
    };
    if !opaque {
        return Err(refuse("the image is not opaque".into()).help("save it without alpha channel").into());
    }
    if channels == 1 {
        pixels.extend_from_slice(decoded.to_luma8().as_raw());
    } else {
        let interleaved = decoded.to_rgb8();
        for channel in 0..3 {
            pixels.extend(interleaved.as_raw().iter().skip(channel).step_by(3));
        }
    }
    Ok(format)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::reading::damage;
    use image::{ExtendedColorType, ImageEncoder, codecs::png::PngEncoder};

    fn png(width: u32, height: u32, colours: ExtendedColorType, pixels: &[u8]) -> Vec<u8> {
        let mut bytes = Vec::new();
        PngEncoder::new(&mut bytes).write_image(pixels, width, height, colours).unwrap();
        bytes
    }

    fn grey(value: u8) -> Vec<u8> {
        png(2, 1, ExtendedColorType::L8, &[value, value + 1])
    }

    /// A tar archive; names are written as they are, also those that no tool would write.
    fn tar(entries: &[(&str, &[u8])]) -> Vec<u8> {
        let mut builder = tar::Builder::new(Vec::new());
        for (name, bytes) in entries {
            let mut header = tar::Header::new_gnu();
            header.as_old_mut().name[..name.len()].copy_from_slice(name.as_bytes());
            header.set_size(bytes.len() as u64);
            header.set_cksum();
            builder.append(&header, *bytes).unwrap();
        }
        builder.into_inner().unwrap()
    }

    fn try_archive(bytes: &[u8]) -> Result<Dataset> {
        decode_archive(bytes, Path::new("a.tar"))
    }

    #[test]
    fn classes_are_alphabetical_and_colours_come_as_planes() {
        let rgb = |v: u8| png(1, 2, ExtendedColorType::Rgb8, &[v, v + 1, v + 2, v + 3, v + 4, v + 5]);
        let (a, b, c) = (rgb(0), rgb(10), rgb(20));
        let archive = tar(&[("train/dog/1.png", &c), ("train/cat/2.png", &b), ("train/cat/1.png", &a)]);
        let set = try_archive(&archive).unwrap();
        assert_eq!(set.class_names().unwrap(), ["cat", "dog"]);
        assert_eq!(set.column("label").unwrap().to_i64(), [0, 0, 1]);
        let image = set.column("image").unwrap();
        assert_eq!(image.ty().to_string(), "u8[3,3,2,1]");
        assert_eq!(image.bytes()[..6], [0, 3, 1, 4, 2, 5]);
        assert_eq!(image.bytes()[12], 20);
    }

    #[test]
    fn a_folder_reads_as_its_archive() {
        let folder = std::env::temp_dir().join(format!("backfit-images-{}", std::process::id()));
        for (class, name, value) in [("b", "x.png", 1), ("a", "y.PNG", 5), ("a", "z.png", 9)] {
            fs::create_dir_all(folder.join(class)).unwrap();
            fs::write(folder.join(class).join(name), grey(value)).unwrap();
        }
        fs::write(folder.join("a").join("notes.txt"), "no image").unwrap();
        let set = read_folder(&folder).unwrap();
        fs::remove_dir_all(&folder).unwrap();
        let (b, y, z) = (grey(1), grey(5), grey(9));
        let archive = try_archive(&tar(&[("b/x.png", &b), ("a/y.PNG", &y), ("a/z.png", &z)])).unwrap();
        assert_eq!(set.column("image").unwrap(), archive.column("image").unwrap());
        assert_eq!(set.column("label").unwrap().to_i64(), [0, 0, 1]);
        assert!(read_folder(&folder).is_err());
    }

    #[test]
    fn images_of_another_size_or_colour_are_named() {
        let (small, wide) = (grey(1), png(3, 1, ExtendedColorType::L8, &[1, 2, 3]));
        let e = try_archive(&tar(&[("c/1.png", &small), ("c/2.png", &wide)])).unwrap_err().to_string();
        for part in ["a.tar/c/2.png", "3×1 grey", "2×1 grey"] {
            assert!(e.contains(part), "{part} missing in: {e}");
        }
        let coloured = png(2, 1, ExtendedColorType::Rgb8, &[0; 6]);
        assert!(try_archive(&tar(&[("c/1.png", &small), ("c/2.png", &coloured)])).is_err());
    }

    #[test]
    fn alpha_is_dropped_only_where_it_says_nothing() {
        let opaque = png(1, 1, ExtendedColorType::Rgba8, &[1, 2, 3, 255]);
        assert_eq!(try_archive(&tar(&[("c/1.png", &opaque)])).unwrap().column("image").unwrap().bytes(), [1, 2, 3]);
        let clear = png(1, 1, ExtendedColorType::Rgba8, &[1, 2, 3, 254]);
        assert!(try_archive(&tar(&[("c/1.png", &clear)])).unwrap_err().to_string().contains("opaque"));
        let deep = png(1, 1, ExtendedColorType::L16, &[1, 2]);
        assert!(try_archive(&tar(&[("c/1.png", &deep)])).unwrap_err().to_string().contains("8 bits"));
    }

    #[test]
    fn entries_that_lead_outside_are_refused() {
        let image = grey(1);
        for name in ["/c/1.png", "../c/1.png", "c/../../1.png"] {
            let e = try_archive(&tar(&[(name, &image)])).unwrap_err().to_string();
            assert!(e.contains("outside") && e.contains(name), "{e}");
        }
        let mut header = tar::Header::new_gnu();
        header.set_entry_type(tar::EntryType::Symlink);
        header.set_size(0);
        let mut builder = tar::Builder::new(Vec::new());
        builder.append_link(&mut header, "c/1.png", "/etc/hosts").unwrap();
        let e = try_archive(&builder.into_inner().unwrap()).unwrap_err().to_string();
        assert!(e.contains("link"), "{e}");
    }

    #[test]
    fn archives_without_classes_or_with_two_parts_are_refused() {
        let image = grey(1);
        assert!(try_archive(&tar(&[("1.png", &image)])).unwrap_err().to_string().contains("no class"));
        let e = try_archive(&tar(&[("train/c/1.png", &image), ("test/c/1.png", &image)]));
        assert!(e.unwrap_err().to_string().contains("'test' and in 'train'"));
        assert!(try_archive(&tar(&[])).unwrap_err().to_string().contains("no images"));
        assert!(try_archive(&tar(&[("c/readme.txt", b"hi")])).is_err());
    }

    #[test]
    fn an_image_that_claims_a_huge_size_is_refused_unread() {
        let mut bytes = grey(1);
        bytes[16..24].copy_from_slice(&[0x7F, 0xFF, 0xFF, 0xFF, 0x7F, 0xFF, 0xFF, 0xFF]);
        assert!(try_archive(&tar(&[("c/1.png", &bytes)])).is_err());
    }

    #[test]
    fn damage_never_panics() {
        let (a, b) = (grey(1), grey(3));
        let archive = tar(&[("c/1.png", &a), ("d/2.png", &b)]);
        damage::never_panics(&archive, |bytes| try_archive(bytes).is_ok());
        damage::never_panics(&a, |bytes| try_archive(&tar(&[("c/1.png", bytes)])).is_ok());
        // All pixels come before the last chunk, which is empty and takes 12 bytes.
        let pixels = a.len() - 12;
        damage::refuses_truncation(&a[..pixels], |bytes| try_archive(&tar(&[("c/1.png", bytes)])).is_ok());
    }
}
