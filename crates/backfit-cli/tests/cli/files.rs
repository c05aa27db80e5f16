//! Small files of the formats that the binary reads.

/// A recipe for a table `points.csv` with two features and a class.
pub const POINTS: &str = r#"
epochs = 2
batch = 4

[model]
kind = "mlp"
layers = [4]

[data]
csv = "points.csv"
label = "kind"
normalisation = "standard"

[loss]
name = "cross_entropy"

[optimizer]
name = "sgd"
learning_rate = 0.1
"#;

/// That table: `rows` points of two classes.
pub fn points(rows: usize) -> String {
    let row = |i: usize| format!("{},{},{}\n", i % 7, (i * 5) % 11, if i % 7 > 3 { "far" } else { "near" });
    "x,y,kind\n".to_owned() + &(0..rows).map(row).collect::<String>()
}

/// IDX of bytes.
pub fn idx(shape: &[u32], bytes: &[u8]) -> Vec<u8> {
    let mut out = vec![0, 0, 8, shape.len() as u8];
    shape.iter().for_each(|n| out.extend(n.to_be_bytes()));
    out.extend(bytes);
    out
}

/// A `.npy` array of f32.
pub fn npy(shape: &str, values: &[f32]) -> Vec<u8> {
    let header = format!("{{'descr': '<f4', 'fortran_order': False, 'shape': ({shape}), }}");
    let mut out = b"\x93NUMPY\x01\x00".to_vec();
    out.extend((header.len() as u16).to_le_bytes());
    out.extend(header.bytes());
    values.iter().for_each(|v| out.extend(v.to_le_bytes()));
    out
}

/// A grey image as PNG, not compressed.
pub fn png(width: u32, height: u32, pixels: &[u8]) -> Vec<u8> {
    let mut raw = Vec::new();
    for row in pixels.chunks(width as usize) {
        raw.push(0);
        raw.extend(row);
    }
    let mut data = vec![0x78, 0x01, 1];
    data.extend((raw.len() as u16).to_le_bytes());
    data.extend((!(raw.len() as u16)).to_le_bytes());
    data.extend(&raw);
    data.extend(adler32(&raw).to_be_bytes());
    let mut head = [width.to_be_bytes(), height.to_be_bytes()].concat();
    head.extend([8, 0, 0, 0, 0]);
    let mut out = b"\x89PNG\r\n\x1a\n".to_vec();
    for (kind, content) in [(b"IHDR", &head), (b"IDAT", &data), (b"IEND", &Vec::new())] {
        let part = [&kind[..], content].concat();
        out.extend((content.len() as u32).to_be_bytes());
        out.extend(&part);
        out.extend(crc32(&part).to_be_bytes());
    }
    out
}

/// Arrays as an archive, not compressed.
pub fn npz(arrays: &[(&str, Vec<u8>)]) -> Vec<u8> {
    let (mut out, mut directory) = (Vec::new(), Vec::new());
    for (name, bytes) in arrays {
        let name = format!("{name}.npy");
        let offset = out.len() as u32;
        let mut fields = vec![20, 0, 0, 0, 0, 0, 0, 0, 0x21, 0];
        fields.extend(crc32(bytes).to_le_bytes());
        fields.extend([(bytes.len() as u32).to_le_bytes(), (bytes.len() as u32).to_le_bytes()].concat());
        fields.extend((name.len() as u16).to_le_bytes());
        fields.extend([0, 0]);
        out.extend([b"PK\x03\x04".as_slice(), &fields, name.as_bytes(), bytes].concat());
        directory.extend([b"PK\x01\x02\x14\x00".as_slice(), &fields, &[0; 10], &offset.to_le_bytes()].concat());
        directory.extend(name.bytes());
    }
    let (count, start) = ((arrays.len() as u16).to_le_bytes(), (out.len() as u32).to_le_bytes());
    let size = (directory.len() as u32).to_le_bytes();
    out.extend(directory);
    out.extend([b"PK\x05\x06\0\0\0\0".as_slice(), &count, &count, &size, &start, &[0, 0]].concat());
    out
}

fn adler32(bytes: &[u8]) -> u32 {
    let (a, b) = bytes.iter().fold((1u32, 0u32), |(a, b), &x| {
        let a = (a + u32::from(x)) % 65521;
        (a, (b + a) % 65521)
    });
    b << 16 | a
}

fn crc32(bytes: &[u8]) -> u32 {
    let step = |c: u32| if c & 1 == 1 { 0xEDB8_8320 ^ (c >> 1) } else { c >> 1 };
    !bytes.iter().fold(!0u32, |crc, &b| (0..8).fold(crc ^ u32::from(b), |c, _| step(c)))
}
