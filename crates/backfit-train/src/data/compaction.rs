//! Vocabularies of which a text uses a part: only tokens that occur need be trained.

use super::text::Windows;
use backfit_ir::{Literal, Problem, Result};

/// The tokens of a large vocabulary that occur in a text, numbered anew from 0 in their old order. A model of the small
/// vocabulary takes its rows from the large tables ([`Compaction::gather`]), and gives them back when it is trained
/// ([`Compaction::scatter`]); all other rows stay as they were.
///
/// ```
/// use backfit_ir::Literal;
/// use backfit_train::data::Compaction;
/// let text = [700, 31_999, 700, 5];
/// let used = Compaction::of(&text, 32_000)?;
/// assert_eq!((used.len(), used.compact(&text)?), (3, vec![1, 2, 1, 0]));
/// assert_eq!(used.restore(&[1, 2, 1, 0])?, text);
///
/// let table = Literal::from_f32([32_000, 1], &vec![0.5; 32_000]);
/// let rows = used.gather(&table)?;
/// assert_eq!(rows.ty().to_string(), "f32[3,1]");
/// let trained = used.scatter(&Literal::from_f32([3, 1], &[1.0, 2.0, 3.0]), &table)?.to_f32();
/// assert_eq!((trained[5], trained[6], trained[700], trained[31_999]), (1.0, 0.5, 2.0, 3.0));
/// # Ok::<(), backfit_ir::Error>(())
/// ```
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Compaction {
    tokens: Vec<i32>,
    vocabulary: usize,
}

impl Compaction {
    /// The tokens of this text; the vocabulary has the tokens `0..vocabulary`.
    ///
    /// # Errors
    /// An empty text; a token outside the vocabulary, with its place.
    pub fn of(text: &[i32], vocabulary: usize) -> Result<Self> {
        let inside = |token: &i32| usize::try_from(*token).is_ok_and(|t| t < vocabulary);
        if let Some(place) = text.iter().position(|token| !inside(token)) {
            let what = format!("token {place} of the text is {}", text[place]);
            return Err(Problem::new(what).because(format!("the vocabulary has tokens 0..{vocabulary}")).into());
        }
        if text.is_empty() {
            return Err(Problem::new("the text has no tokens").help("check the path of the text").into());
        }
        let mut tokens = text.to_vec();
        tokens.sort_unstable();
        tokens.dedup();
        Ok(Compaction { tokens, vocabulary })
    }

    /// How many tokens occur: the size of the small vocabulary.
    pub fn len(&self) -> usize {
        self.tokens.len()
    }

    /// Never: a text has tokens.
    pub fn is_empty(&self) -> bool {
        self.tokens.is_empty()
    }

    /// The tokens that occur, in the order of their new numbers.
    pub fn tokens(&self) -> &[i32] {
        &self.tokens
    }

    /// The new numbers of a text's tokens.
    ///
    /// # Errors
    /// A token that did not occur in the text this was made of, with its place.
    pub fn compact(&self, text: &[i32]) -> Result<Vec<i32>> {
        let numbered = |(place, token): (usize, &i32)| {
            self.tokens.binary_search(token).map(|n| n as i32).map_err(|_| {
                let problem = Problem::new(format!("token {place} of the text is {token}, which did not occur"));
                problem.help("make the compaction of all text that is used, validation included").into()
            })
        };
        text.iter().enumerate().map(numbered).collect()
    }

    /// The tokens of these numbers.
    ///
    /// # Errors
    /// A number that none has, with its place.
    pub fn restore(&self, numbers: &[i32]) -> Result<Vec<i32>> {
        let token = |(place, number): (usize, &i32)| {
            let found = usize::try_from(*number).ok().and_then(|n| self.tokens.get(n)).copied();
            found.ok_or_else(|| {
                let problem = Problem::new(format!("number {place} is {number}"));
                problem.because(format!("{} tokens occur", self.len())).into()
            })
        };
        numbers.iter().enumerate().map(token).collect()
    }

    /// The rows of a table `[vocabulary, *]` whose tokens occur: `[len, *]`.
    ///
    /// # Errors
    /// A table with another number of rows, or of a packed dtype.
    pub fn gather(&self, table: &Literal) -> Result<Literal> {
        let width = self.row(table, self.vocabulary)?;
        let rows = self.tokens.iter().flat_map(|&t| &table.bytes()[t as usize * width..][..width]);
        let mut dims = table.ty().shape.to_vec();
        dims[0] = self.len();
        Ok(Literal::from_bytes(table.ty().with_shape(dims), rows.copied().collect::<Vec<u8>>()).expect("whole rows"))
    }

    /// The table with these rows, `[len, *]`, in their old places.
    ///
    /// # Errors
    /// Rows or a table of another number, width or dtype.
    pub fn scatter(&self, rows: &Literal, table: &Literal) -> Result<Literal> {
        let width = self.row(table, self.vocabulary)?;
        if self.row(rows, self.len())? != width || rows.ty().dtype != table.ty().dtype {
            return Err(Problem::new(format!("the rows are {}, and the table is {}", rows.ty(), table.ty())).into());
        }
        let mut bytes = table.bytes().to_vec();
        for (row, &token) in rows.bytes().chunks_exact(width.max(1)).zip(&self.tokens) {
            bytes[token as usize * width..][..width].copy_from_slice(row);
        }
        Ok(Literal::from_bytes(table.ty().clone(), bytes).expect("as many bytes as before"))
    }

    /// Windows over the numbers of a text; see [`Corpus::windows`](super::text::Corpus::windows).
    ///
    /// # Errors
    /// As for [`Compaction::compact`].
    pub fn windows(&self, text: &[i32], context: usize) -> Result<Windows> {
        Ok(Windows::of(self.compact(text)?, context))
    }

    /// The bytes of a row of a tensor with so many rows.
    fn row(&self, table: &Literal, rows: usize) -> Result<usize> {
        let ty = table.ty();
        if ty.dtype.is_packed() || ty.shape.first() != Some(&rows) {
            return Err(Problem::new(format!("the table is {ty}; it must have {rows} rows of a dtype of bytes")).into());
        }
        Ok(ty.bytes() / rows.max(1))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn table(rows: usize) -> Literal {
        Literal::from_f32([rows, 2], &(0..rows * 2).map(|v| v as f32).collect::<Vec<_>>())
    }

    #[test]
    fn rows_come_back_to_where_they_were_and_others_keep_every_bit() {
        let used = Compaction::of(&[9, 2, 2, 7], 10).unwrap();
        assert_eq!(used.scatter(&used.gather(&table(10)).unwrap(), &table(10)).unwrap(), table(10));
        let trained = used.scatter(&Literal::from_f32([3, 2], &[-1.0; 6]), &table(10)).unwrap().to_f32();
        for (i, value) in trained.into_iter().enumerate() {
            let expected = if [2, 7, 9].contains(&(i / 2)) { -1.0 } else { i as f32 };
            assert_eq!(value, expected, "{i}");
        }
    }

    #[test]
    fn tokens_and_tables_that_do_not_fit_are_refused() {
        let used = Compaction::of(&[1, 3], 4).unwrap();
        let texts = [
            Compaction::of(&[1, 4], 4).unwrap_err().to_string(),
            Compaction::of(&[-1], 4).unwrap_err().to_string(),
            Compaction::of(&[], 4).unwrap_err().to_string(),
            used.compact(&[3, 2]).unwrap_err().to_string(),
            used.restore(&[0, 2]).unwrap_err().to_string(),
            used.gather(&table(5)).unwrap_err().to_string(),
            used.scatter(&Literal::from_f32([2, 3], &[0.0; 6]), &table(4)).unwrap_err().to_string(),
        ];
        let words =
            ["token 1", "token 0", "no tokens", "token 1 of the text is 2", "number 1 is 2", "4 rows", "f32[2,3]"];
        for (text, word) in texts.iter().zip(words) {
            assert!(text.contains(word), "{text}");
        }
    }
}
